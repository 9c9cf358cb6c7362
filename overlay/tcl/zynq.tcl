# The processing system of Zynq-7000, with the board's own settings for memory and pins.

proc create_processing_system {} {
    global rasna ps_clock ps_clock_sinks ps_reset ps_irq ps_control ps_program ps_data
    global ps_space ps_program_segment ps_data_segment
    set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:processing_system7 ps]
    apply_bd_automation -rule xilinx.com:bd_rule:processing_system7 -config {make_external {FIXED_IO, DDR} apply_board_preset 1} $ps
    set_property -dict [list \
        CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ $rasna(clock_mhz) \
        CONFIG.PCW_USE_M_AXI_GP0 1 \
        CONFIG.PCW_USE_S_AXI_HP0 1 \
        CONFIG.PCW_S_AXI_HP0_DATA_WIDTH $rasna(port_bits) \
        CONFIG.PCW_USE_S_AXI_HP1 1 \
        CONFIG.PCW_S_AXI_HP1_DATA_WIDTH $rasna(port_bits) \
        CONFIG.PCW_USE_FABRIC_INTERRUPT 1 \
        CONFIG.PCW_IRQ_F2P_INTR 1 \
    ] $ps
    set ps_clock ps/FCLK_CLK0
    set ps_clock_sinks {ps/M_AXI_GP0_ACLK ps/S_AXI_HP0_ACLK ps/S_AXI_HP1_ACLK}
    set ps_reset ps/FCLK_RESET0_N
    set ps_irq ps/IRQ_F2P
    set ps_control ps/M_AXI_GP0
    set ps_program ps/S_AXI_HP1
    set ps_data ps/S_AXI_HP0
    set ps_space ps/Data
    set ps_program_segment ps/S_AXI_HP1/HP1_DDR_LOWOCM
    set ps_data_segment ps/S_AXI_HP0/HP0_DDR_LOWOCM
}
