# A strict model of the Vivado and Vitis HLS commands that overlay/tcl uses. Not those tools: it knows what the scripts may
# do, refuses all else, and writes what was done, one command a line, to $env(STUB_LOG). Order matters: a pin exists when
# its cell and its configuration do, an address can be assigned when the interfaces are joined.
#
#   tclsh stub.tcl vivado ... -source SCRIPT -tclargs SETTINGS        tclsh stub.tcl vitis_hls -f SCRIPT [SETTINGS]
#   tclsh stub.tcl vitis-run --mode hls --tcl SCRIPT

set ::log [open $env(STUB_LOG) a]
proc record {args} { puts $::log [join $args " "]; flush $::log }
proc need {condition text} { if {![uplevel 1 [list expr $condition]]} { error "stub: $text" } }
proc option {name default} { expr {[info exists ::env($name)] ? $::env($name) : $default} }
foreach name {project design part wrapper validated core top} { set ::$name "" }
array set ::cells {}; array set ::config {}; array set ::driven {}; array set ::joined {}; array set ::spaces {}
array set ::done {}

# Objects are texts of the form kind:name ------------------------------------------------------
proc kind {object} { lindex [split $object :] 0 }
proc name {object} { string range $object [string first : $object]+1 end }

proc get_parts {part} { expr {[option STUB_PART $part] eq $part ? "part:$part" : ""} }
proc get_board_parts {part} { expr {[option STUB_BOARD_PART $part] eq $part ? "board_part:$part" : ""} }

proc create_project {project directory args} {
    need {$::project eq ""} "a project is open"
    if {$project eq "-in_memory"} {
        need {$directory eq "-part" && [llength $args] == 1} "create_project -in_memory -part PART"
        set ::project memory
        record create_project -in_memory part=[lindex $args 0]
        return
    }
    need {[lindex $args 0] eq "-part" && [lindex $args 2] eq "-force"} "create_project NAME DIR -part PART -force"
    file mkdir $directory
    close [open $directory/$project.xpr w]
    set ::project $project
    set ::project_dir $directory
    record create_project $project part=[lindex $args 1]
}
proc open_project {args} {
    need {$::project eq ""} "a project is open"
    if {[lindex $args 0] eq "-reset"} {
        set ::project [lindex $args 1]
    } else {
        need {[file exists [lindex $args 0]]} "[lindex $args 0] does not exist"
        set ::project [file rootname [file tail [lindex $args 0]]]
        set ::project_dir [file dirname [lindex $args 0]]
    }
    record open_project [file tail [lindex $args end]]
}
proc close_project {} { need {$::project ne ""} "no project is open"; set ::project ""; record close_project }
proc current_project {} { need {$::project ne ""} "no project is open"; return project:$::project }
proc current_fileset {} { current_project; return fileset:sources_1 }
proc update_ip_catalog {} { current_project; set ::done(catalog) 1; record update_ip_catalog }
proc get_files {file} {
    need {[info exists ::files($file)]} "the file $file is not in the project"
    return file:$file
}
proc add_files {args} {
    current_project
    if {[lindex $args 0] eq "-norecurse"} { set args [lrange $args 1 end] }
    foreach file [lindex $args 0] {
        need {[file exists $file]} "$file does not exist"
        set ::files([file tail $file]) $file
        record add_files [file tail $file] [lrange $args 1 end]
    }
}
proc update_compile_order {flag set} { need {$::top ne ""} "no top is set"; record update_compile_order $set }

# Properties: every kind of object has its own -------------------------------------------------
set allowed(project) {board_part ip_repo_paths}
set allowed(fileset) {top}
set allowed(file) {file_type}
set allowed(core) {name display_name version core_revision}
set allowed(block) {range}
set allowed(register) {address_offset size access}
set allowed(busif) {slave_memory_map_ref}
set ps7 {CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ CONFIG.PCW_USE_M_AXI_GP0 CONFIG.PCW_USE_M_AXI_GP1 CONFIG.PCW_USE_FABRIC_INTERRUPT
    CONFIG.PCW_IRQ_F2P_INTR}
set ps8 {CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ CONFIG.PSU__USE__M_AXI_GP0 CONFIG.PSU__USE__M_AXI_GP1 CONFIG.PSU__USE__M_AXI_GP2
    CONFIG.PSU__USE__IRQ0}
foreach hp {0 1 2 3} {
    lappend ps7 CONFIG.PCW_USE_S_AXI_HP$hp CONFIG.PCW_S_AXI_HP${hp}_DATA_WIDTH
    lappend ps8 CONFIG.PSU__USE__S_AXI_GP[expr {$hp+2}] CONFIG.PSU__SAXIGP[expr {$hp+2}]__DATA_WIDTH
}
array set allowed_cell [list processing_system7 $ps7 zynq_ultra_ps_e $ps8 smartconnect {CONFIG.NUM_SI CONFIG.NUM_MI}]

proc set_property {args} {
    if {[lindex $args 0] eq "-dict"} {
        lassign [lrange $args 1 end] pairs object
    } else {
        lassign $args property value object
        set pairs [list $property $value]
    }
    need {$object ne ""} "set_property without an object"
    foreach {property value} $pairs {
        set kind [kind $object]
        if {$kind eq "cell"} {
            set type [type_of [name $object]]
            need {[info exists ::allowed_cell($type)] && $property in $::allowed_cell($type)} "$type has no property $property"
            set ::config([name $object],$property) $value
            if {[string match *DATA_WIDTH $property]} {
                need {$value in {32 64 128} && !($type eq "processing_system7" && $value == 128)} "$property cannot be $value"
            }
        } else {
            need {[info exists ::allowed($kind)] && $property in $::allowed($kind)} "$kind has no property $property"
            if {$property eq "top"} { set ::top $value }
            if {$property eq "ip_repo_paths"} { need {[file exists $value/component.xml]} "$value holds no IP"; set value IP }
        }
        record set_property [name $object] $property=$value
    }
}

# The block design -----------------------------------------------------------------------------
proc type_of {cell} { lindex [split $::cells($cell) :] 2 }
proc on {cell property} { expr {[info exists ::config($cell,CONFIG.$property)] && $::config($cell,CONFIG.$property) eq "1"} }
proc create_bd_design {design} {
    current_project
    need {$::design eq ""} "there is a design"
    set ::design $design
    record create_bd_design $design
}
proc create_bd_cell {args} {
    need {$::design ne ""} "there is no block design"
    need {[lrange $args 0 2] eq "-type ip -vlnv" && [llength $args] == 5} "create_bd_cell -type ip -vlnv VLNV NAME"
    lassign [lrange $args 3 4] vlnv cell
    need {![info exists ::cells($cell)]} "the cell $cell exists"
    need {[lindex [split $vlnv :] 2] in {processing_system7 zynq_ultra_ps_e smartconnect proc_sys_reset rasna_accelerator}} "no IP $vlnv"
    if {[string match rasna:* $vlnv]} {
        need {[info exists ::done(catalog)]} "the catalogue does not know $vlnv before update_ip_catalog"
    }
    set ::cells($cell) $vlnv
    record create_bd_cell $vlnv $cell
    return cell:$cell
}
proc apply_bd_automation {args} {
    need {[llength $args] == 5 && [lindex $args 0] eq "-rule" && [lindex $args 2] eq "-config"} "apply_bd_automation -rule RULE -config LIST CELL"
    set cell [name [lindex $args 4]]
    need {[lindex [split [lindex $args 1] :] 2] eq [type_of $cell]} "the rule is not of [type_of $cell]"
    need {[dict get [lindex $args 3] apply_board_preset] eq "1"} "the board's settings are needed"
    set ::done(preset) 1
    record apply_bd_automation [lindex $args 1] [lindex $args 3] $cell
}
proc get_bd_cells {cell} { need {[info exists ::cells($cell)]} "there is no cell $cell"; return cell:$cell }

# Ports of the processing systems by name; on UltraScale+: name of the setting, interface, clock pin
set ::ports7 {M_AXI_GP0 M_AXI_GP1 S_AXI_HP0 S_AXI_HP1 S_AXI_HP2 S_AXI_HP3}
set ::ports8 {M_AXI_GP0 M_AXI_HPM0_FPD maxihpm0_fpd_aclk M_AXI_GP1 M_AXI_HPM1_FPD maxihpm1_fpd_aclk
    S_AXI_GP2 S_AXI_HP0_FPD saxihp0_fpd_aclk S_AXI_GP3 S_AXI_HP1_FPD saxihp1_fpd_aclk
    S_AXI_GP4 S_AXI_HP2_FPD saxihp2_fpd_aclk S_AXI_GP5 S_AXI_HP3_FPD saxihp3_fpd_aclk}
# name direction pairs; interfaces master or slave
proc pins_of {cell} {
    switch [type_of $cell] {
        processing_system7 {
            set pins {FCLK_CLK0 O FCLK_RESET0_N O}
            foreach port $::ports7 { if {[on $cell PCW_USE_$port]} { lappend pins ${port}_ACLK I } }
            if {[on $cell PCW_USE_FABRIC_INTERRUPT] && [on $cell PCW_IRQ_F2P_INTR]} { lappend pins IRQ_F2P I }
        }
        zynq_ultra_ps_e {
            set pins {pl_clk0 O pl_resetn0 O}
            foreach {use port pin} $::ports8 { if {[on $cell PSU__USE__$use]} { lappend pins $pin I } }
            if {[on $cell PSU__USE__IRQ0]} { lappend pins pl_ps_irq0 I }
        }
        smartconnect { set pins {aclk I aresetn I} }
        proc_sys_reset { set pins {slowest_sync_clk I ext_reset_in I peripheral_aresetn O} }
        rasna_accelerator { set pins {aclk I aresetn I irq O} }
    }
    return $pins
}
proc interfaces_of {cell} {
    switch [type_of $cell] {
        processing_system7 {
            set found {}
            foreach port $::ports7 { if {[on $cell PCW_USE_$port]} { lappend found $port [string index $port 0] } }
            return $found
        }
        zynq_ultra_ps_e {
            set found {}
            foreach {use port pin} $::ports8 {
                if {[on $cell PSU__USE__$use]} { lappend found $port [string index $port 0] }
            }
            return $found
        }
        smartconnect {
            need {$::config($cell,CONFIG.NUM_SI) == 1 && $::config($cell,CONFIG.NUM_MI) == 1} "$cell must join one to one"
            return {S00_AXI S M00_AXI M}
        }
        rasna_accelerator { return {s_axi S m_axi_program M m_axi_data M} }
    }
    return {}
}
proc get_bd_pins {path} {
    lassign [split $path /] cell pin
    need {[info exists ::cells($cell)] && [dict exists [pins_of $cell] $pin]} "there is no pin $path"
    return pin:$path
}
proc get_bd_intf_pins {path} {
    lassign [split $path /] cell port
    need {[info exists ::cells($cell)] && [dict exists [interfaces_of $cell] $port]} "there is no interface $path"
    return intf:$path
}
proc connect_bd_net {from to} {
    foreach {object side} [list $from O $to I] {
        need {[kind $object] eq "pin"} "$object is no pin"
        lassign [split [name $object] /] cell pin
        need {[dict get [pins_of $cell] $pin] eq $side} "[name $object] is not the $side side of a net"
    }
    need {![info exists ::driven([name $to])]} "[name $to] is driven already"
    set ::driven([name $to]) [name $from]
    record connect_bd_net [name $from] [name $to]
}
proc connect_bd_intf_net {from to} {
    foreach {object side} [list $from M $to S] {
        need {[kind $object] eq "intf"} "$object is no interface"
        lassign [split [name $object] /] cell port
        need {[dict get [interfaces_of $cell] $port] eq $side} "[name $object] is not the $side side"
        need {![info exists ::joined([name $object])]} "[name $object] is joined already"
    }
    set ::joined([name $from]) [name $to]
    set ::joined([name $to]) [name $from]
    record connect_bd_intf_net [name $from] [name $to]
}
proc get_bd_addr_spaces {space} {
    need {$space in {ps/Data rasna_0/m_axi_program rasna_0/m_axi_data}} "there is no address space $space"
    return space:$space
}
# segment → the interface behind which it lies
array set ::segments {rasna_0/s_axi/reg0 rasna_0/s_axi}
foreach hp {0 1 2 3} {
    set ::segments(ps/S_AXI_HP$hp/HP${hp}_DDR_LOWOCM) ps/S_AXI_HP$hp
    set ::segments(ps/SAXIGP[expr {$hp+2}]/HP${hp}_DDR_LOW) ps/S_AXI_HP${hp}_FPD
}
proc get_bd_addr_segs {segment} { need {[info exists ::segments($segment)]} "there is no segment $segment"; return segment:$segment }
proc assign_bd_address {args} {
    need {[llength $args] == 7 && [lindex $args 0] eq "-offset" && [lindex $args 2] eq "-range" && [lindex $args 4] eq "-target_address_space"} "assign_bd_address -offset -range -target_address_space SPACE SEGMENT"
    lassign [list [lindex $args 1] [lindex $args 3] [name [lindex $args 5]] [name [lindex $args 6]]] offset range space segment
    need {$range >= 4096 && ($range & ($range - 1)) == 0 && $offset % $range == 0} "the range $range at $offset is not a power of two, aligned"
    set master [expr {$space eq "ps/Data" ? [lindex [array names ::joined ps/M_AXI*] 0] : $space}]
    need {$master ne "" && [info exists ::joined($master)]} "$space is not joined to anything"
    set cell [lindex [split $::joined($master) /] 0]
    need {[info exists ::joined($cell/M00_AXI)] && $::joined($cell/M00_AXI) eq $::segments($segment)} "$segment is not reached from $space"
    need {![info exists ::spaces($space)]} "$space has its addresses already"
    set ::spaces($space) $segment
    record assign_bd_address offset=[format %#x $offset] range=[format %#x $range] $space $segment
}
proc validate_bd_design {} {
    need {[info exists ::done(preset)]} "the processing system has no board settings"
    foreach cell [lsort [array names ::cells]] {
        foreach {pin side} [pins_of $cell] {
            need {$side eq "O" || [info exists ::driven($cell/$pin)]} "$cell/$pin is not driven"
        }
        foreach {port side} [interfaces_of $cell] { need {[info exists ::joined($cell/$port)]} "$cell/$port is not joined" }
    }
    need {[llength [array names ::spaces]] == 3} "addresses are missing"
    set ::validated 1
    record validate_bd_design
}
proc save_bd_design {} { need {$::validated ne ""} "save before validate"; set ::files($::design.bd) x; record save_bd_design }
proc make_wrapper {args} {
    need {[lindex $args 0] eq "-files" && [lindex $args 2] eq "-top"} "make_wrapper -files FILE -top"
    set ::wrapper $::project_dir/${::design}_wrapper.v
    close [open $::wrapper w]
    record make_wrapper [name [lindex $args 1]]
    return $::wrapper
}
proc generate_target {what file} {
    need {$::top eq "rasna_wrapper"} "the wrapper is not the top"
    set directory $::project_dir/rasna.gen/sources_1/bd/rasna/hw_handoff
    file mkdir $directory
    set out [open $directory/rasna.hwh w]
    puts $out "<EDKSYSTEM/>"
    close $out
    record generate_target $what [name $file]
}

# The IP packager --------------------------------------------------------------------------------
namespace eval ipx {
    proc package_project {args} {
        need {$::top ne "" && [llength $args] == 10} "package_project before a top is set, or other arguments"
        set ::ip_dir [dict get [lrange $args 0 7] -root_dir]
        set ::core new
        record package_project [lrange $args 2 end]
    }
    proc current_core {} { need {$::core ne ""} "no core is open"; return core:new }
    proc associate_bus_interfaces {args} {
        need {[lindex $args 0] eq "-busif" && [lindex $args 1] in {s_axi m_axi_program m_axi_data}} "unknown bus [lindex $args 1]"
        record associate_bus_interfaces [lindex $args 1] [lindex $args 3]
    }
    proc get_memory_maps {map of core} { expr {[option STUB_INFERS 1] ? "map:$map" : ""} }
    proc get_address_blocks {block of map} { expr {[option STUB_INFERS 1] ? "block:$block" : ""} }
    proc add_memory_map {map core} { return map:$map }
    proc add_address_block {block map} { return block:$block }
    proc get_bus_interfaces {name of core} { return busif:$name }
    proc add_register {register block} { record add_register $register; return register:$register }
    proc create_xgui_files {core} { record create_xgui_files }
    proc update_checksums {core} { record update_checksums }
    proc check_integrity {core} { set ::done(integrity) 1; record check_integrity }
    proc save_core {core} {
        need {[info exists ::done(integrity)]} "save before check"
        file mkdir $::ip_dir
        close [open $::ip_dir/component.xml w]
        record save_core
    }
}

# Runs and reports -------------------------------------------------------------------------------
proc get_runs {run} { need {$run in {synth_1 impl_1}} "no run $run"; return run:$run }
proc reset_run {run} { get_runs $run; record reset_run $run }
proc launch_runs {run flag jobs} { get_runs $run; set ::done(launched) $run; record launch_runs $run }
proc wait_on_run {run} { need {$::done(launched) eq $run} "$run was not launched"; set ::done($run) 1; record wait_on_run $run }
proc get_property {property object} {
    switch $property {
        PROGRESS { need {[info exists ::done([name $object])]} "[name $object] is not done"; return [option STUB_PROGRESS 100%] }
        STATUS { return "[name $object] ERROR" }
        SLACK { return [option STUB_WNS 0.352] }
    }
    error "stub: no property $property"
}
proc open_run {run} { need {[info exists ::done($run)]} "$run is not done"; set ::done(open) $run; record open_run $run }
proc write_report {file text} { set out [open $file w]; puts $out $text; close $out }
proc report_utilization {flag file} {
    need {[info exists ::done(open)]} "no run is open"
    set text [read [set in [open [file join [file dirname [info script]] utilization.rpt]]]]
    close $in
    write_report $file [string map [list @LUTS@ [option STUB_LUTS 31842]] $text]
    record report_utilization [file tail $file]
}
proc report_timing_summary {flag file} {
    need {[info exists ::done(open)] && $::done(open) eq "impl_1"} "no implementation is open"
    set text [read [set in [open [file join [file dirname [info script]] timing.rpt]]]]
    close $in
    write_report $file [string map [list @WNS@ [option STUB_WNS 0.352] @WHS@ [option STUB_WHS 0.014]] $text]
    record report_timing_summary [file tail $file]
}
proc get_timing_paths {args} { need {"-setup" in $args} "setup paths are needed"; return path:worst }
proc write_bitstream {flag file} {
    need {[info exists ::done(open)] && $::done(open) eq "impl_1"} "no implementation is open"
    write_report $file bits
    record write_bitstream [file tail $file]
}

# The probe of the preflight: the licence is looked up when synthesis begins
proc read_verilog {file} { current_project; need {[file exists $file]} "$file does not exist"; record read_verilog [file tail $file] }
proc synth_design {args} {
    need {$::project eq "memory" && [llength $args] == 4} "synth_design -top TOP -part PART in memory"
    record synth_design $args
    if {[option STUB_LICENCE 1] ne "1"} {
        error "ERROR: \[Common 17-345\] A valid license was not found for feature 'Synthesis' and/or device '[lindex $args 3]'."
    }
}

# Vitis HLS --------------------------------------------------------------------------------------
proc set_top {name} { set ::top $name; record set_top $name }
proc open_solution {args} { need {$::top ne ""} "no top is set"; set ::done(solution) 1; record open_solution $args }
proc set_part {part} { need {[info exists ::done(solution)]} "no solution is open"; record set_part $part }
proc create_clock {args} { set ::done(clock) 1; record create_clock $args }
proc config_interface {args} { record config_interface $args }
proc csynth_design {} {
    need {[info exists ::done(clock)]} "there is no clock"
    file mkdir $::project/solution/syn/verilog
    close [open $::project/solution/syn/verilog/$::top.v w]
    record csynth_design
}

# The command line -------------------------------------------------------------------------------
set tool [file tail [lindex $argv 0]]
if {"-version" in $argv} { puts [option STUB_VERSION "$tool v2023.2 (64-bit)"]; exit 0 }
if {$tool eq "vivado"} {
    set script [lindex $argv [lsearch $argv -source]+1]
    set argv [lrange $argv [lsearch $argv -tclargs]+1 end]
} elseif {$tool eq "vitis-run"} {
    if {[llength $argv] != 5 || [lrange $argv 1 3] ne "--mode hls --tcl"} { puts "ERROR: unrecognised option"; exit 1 }
    set script [lindex $argv 4]
    set argv {}
} else {
    set script [lindex $argv [lsearch $argv -f]+1]
}
record script [file tail $script]
set stub_directory [file dirname [info script]]
if {[catch {
    # reports lie beside this file, whatever script runs
    rename info stub_info
    proc info {what args} {
        if {$what eq "script"} { return $::stub_directory/stub.tcl }
        uplevel 1 [list stub_info $what {*}$args]
    }
    source $script
} message]} {
    puts "ERROR: $message"
    exit 1
}
