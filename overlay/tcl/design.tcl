# The block design: processing system, accelerator, and what joins them. Not run with Vivado by this project yet.
#   vivado -mode batch -source design.tcl -tclargs settings.tcl
source [lindex $argv 0]
source [file join $rasna(tcl_dir) $rasna(family).tcl]

if {[get_parts $rasna(part)] eq ""} {
    error "the part $rasna(part) is not installed or not licensed in this Vivado; add the device family in its installer ($rasna(edition))"
}
if {[get_board_parts $rasna(board_part)] eq ""} {
    error "the board files of $rasna(board_part) are not installed; get them from the board's vendor or the Vivado store, they hold the settings of its memory"
}
create_project rasna $rasna(project_dir) -part $rasna(part) -force
set_property board_part $rasna(board_part) [current_project]
set_property ip_repo_paths $rasna(ip_dir) [current_project]
update_ip_catalog
create_bd_design rasna

# The processing system comes with pins ps_clock, ps_reset, ps_irq and interfaces ps_control, ps_program, ps_data.
create_processing_system

create_bd_cell -type ip -vlnv $rasna(ip_vendor):$rasna(ip_library):$rasna(ip_name):$rasna(ip_version) rasna_0
create_bd_cell -type ip -vlnv xilinx.com:ip:proc_sys_reset reset_0
create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect control_0
create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect program_0
create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect data_0
set_property -dict {CONFIG.NUM_SI 1 CONFIG.NUM_MI 1} [get_bd_cells control_0]
set_property -dict {CONFIG.NUM_SI 1 CONFIG.NUM_MI 1} [get_bd_cells program_0]
set_property -dict {CONFIG.NUM_SI 1 CONFIG.NUM_MI 1} [get_bd_cells data_0]

foreach pin [concat $ps_clock_sinks {reset_0/slowest_sync_clk rasna_0/aclk control_0/aclk program_0/aclk data_0/aclk}] {
    connect_bd_net [get_bd_pins $ps_clock] [get_bd_pins $pin]
}
connect_bd_net [get_bd_pins $ps_reset] [get_bd_pins reset_0/ext_reset_in]
foreach pin {rasna_0/aresetn control_0/aresetn program_0/aresetn data_0/aresetn} {
    connect_bd_net [get_bd_pins reset_0/peripheral_aresetn] [get_bd_pins $pin]
}
connect_bd_net [get_bd_pins rasna_0/irq] [get_bd_pins $ps_irq]

connect_bd_intf_net [get_bd_intf_pins $ps_control] [get_bd_intf_pins control_0/S00_AXI]
connect_bd_intf_net [get_bd_intf_pins control_0/M00_AXI] [get_bd_intf_pins rasna_0/s_axi]
connect_bd_intf_net [get_bd_intf_pins rasna_0/m_axi_program] [get_bd_intf_pins program_0/S00_AXI]
connect_bd_intf_net [get_bd_intf_pins program_0/M00_AXI] [get_bd_intf_pins $ps_program]
connect_bd_intf_net [get_bd_intf_pins rasna_0/m_axi_data] [get_bd_intf_pins data_0/S00_AXI]
connect_bd_intf_net [get_bd_intf_pins data_0/M00_AXI] [get_bd_intf_pins $ps_data]

assign_bd_address -offset $rasna(control_base) -range $rasna(control_range) -target_address_space [get_bd_addr_spaces $ps_space] [get_bd_addr_segs rasna_0/s_axi/reg0]
assign_bd_address -offset $rasna(memory_base) -range $rasna(memory_bytes) -target_address_space [get_bd_addr_spaces rasna_0/m_axi_program] [get_bd_addr_segs $ps_program_segment]
assign_bd_address -offset $rasna(memory_base) -range $rasna(memory_bytes) -target_address_space [get_bd_addr_spaces rasna_0/m_axi_data] [get_bd_addr_segs $ps_data_segment]

validate_bd_design
save_bd_design
add_files -norecurse [make_wrapper -files [get_files rasna.bd] -top]
set_property top rasna_wrapper [current_fileset]
update_compile_order -fileset sources_1
generate_target all [get_files rasna.bd]
close_project
