# Whether this Vivado has the part, the board's files and a licence for the part: a module of one register is synthesised, which
# asks for the licence first. Part of the preflight. Not run with Vivado by this project yet.
#   vivado -mode batch -source probe.tcl -tclargs settings.tcl probe.v
source [lindex $argv 0]

if {[get_parts $rasna(part)] eq ""} {
    puts "probe part: missing"
} else {
    puts "probe part: found"
    puts "probe board files: [expr {[get_board_parts $rasna(board_part)] eq "" ? "missing" : "found"}]"
    create_project -in_memory -part $rasna(part)
    read_verilog [lindex $argv 1]
    if {[catch {synth_design -top rasna_probe -part $rasna(part)} message]} {
        puts "probe licence: [join [split $message \n] { }]"
    } else {
        puts "probe licence: found"
    }
    close_project
}
