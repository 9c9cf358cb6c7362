# The processing system of Zynq-7000, with the board's own settings for memory and pins.

proc create_processing_system {} {
    global rasna ps_clock ps_clock_sinks ps_reset ps_irq ps_control ps_program ps_data
    global ps_space ps_program_segment ps_data_segment
    set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:processing_system7 ps]
    apply_bd_automation -rule xilinx.com:bd_rule:processing_system7 -config {make_external {FIXED_IO, DDR} apply_board_preset 1} $ps
    # A board's preset may have enabled a port that nothing here clocks.
    set_property -dict [list \
        CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ $rasna(clock_mhz) \
        CONFIG.PCW_USE_M_AXI_GP0 [expr {$rasna(control_port) eq "M_AXI_GP0"}] \
        CONFIG.PCW_USE_M_AXI_GP1 [expr {$rasna(control_port) eq "M_AXI_GP1"}] \
        CONFIG.PCW_USE_$rasna(data_port) 1 \
        CONFIG.PCW_$rasna(data_port)_DATA_WIDTH $rasna(port_bits) \
        CONFIG.PCW_USE_$rasna(program_port) 1 \
        CONFIG.PCW_$rasna(program_port)_DATA_WIDTH $rasna(port_bits) \
        CONFIG.PCW_USE_FABRIC_INTERRUPT 1 \
        CONFIG.PCW_IRQ_F2P_INTR 1 \
    ] $ps
    set ps_clock ps/FCLK_CLK0
    set ps_clock_sinks [list ps/$rasna(control_port)_ACLK ps/$rasna(data_port)_ACLK ps/$rasna(program_port)_ACLK]
    set ps_reset ps/FCLK_RESET0_N
    set ps_irq ps/IRQ_F2P
    set ps_control ps/$rasna(control_port)
    set ps_program ps/$rasna(program_port)
    set ps_data ps/$rasna(data_port)
    set ps_space ps/Data
    set ps_program_segment ps/$rasna(program_port)/[string map {S_AXI_ {}} $rasna(program_port)]_DDR_LOWOCM
    set ps_data_segment ps/$rasna(data_port)/[string map {S_AXI_ {}} $rasna(data_port)]_DDR_LOWOCM
}
