# Packages the accelerator's RTL as an IP. Not run with Vivado by this project yet: see docs/boards.md.
#   vivado -mode batch -source package.tcl -tclargs settings.tcl
source [lindex $argv 0]

create_project package $rasna(work_dir)/package -part $rasna(part) -force
add_files -norecurse $rasna(sources)
set_property file_type {Verilog Header} [get_files isa.svh]
set_property top $rasna(top) [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir $rasna(ip_dir) -vendor $rasna(ip_vendor) -library $rasna(ip_library) -taxonomy /UserIP -import_files -force
set core [ipx::current_core]
set_property name $rasna(ip_name) $core
set_property display_name {Rasna accelerator} $core
set_property version $rasna(ip_version) $core
# A revision of our own: the default is made of date and time, which Vivado 2021 and older cannot hold since 2022.
set_property core_revision 1 $core

ipx::associate_bus_interfaces -busif s_axi -clock aclk $core
ipx::associate_bus_interfaces -busif m_axi_program -clock aclk $core
ipx::associate_bus_interfaces -busif m_axi_data -clock aclk $core

set map [ipx::get_memory_maps s_axi -of_objects $core]
if {$map eq ""} {
    set map [ipx::add_memory_map s_axi $core]
    set_property slave_memory_map_ref s_axi [ipx::get_bus_interfaces s_axi -of_objects $core]
}
set block [ipx::get_address_blocks reg0 -of_objects $map]
if {$block eq ""} {
    set block [ipx::add_address_block reg0 $map]
}
set_property range $rasna(control_range) $block
foreach {name offset access} $rasna(registers) {
    set register [ipx::add_register $name $block]
    set_property address_offset $offset $register
    set_property size 32 $register
    set_property access $access $register
}

ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
close_project
