# The processing system of Zynq UltraScale+, with the board's own settings for memory and pins.

proc create_processing_system {} {
    global rasna ps_clock ps_clock_sinks ps_reset ps_irq ps_control ps_program ps_data
    global ps_space ps_program_segment ps_data_segment
    set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:zynq_ultra_ps_e ps]
    apply_bd_automation -rule xilinx.com:bd_rule:zynq_ultra_ps_e -config {apply_board_preset 1} $ps
    # GP0 of the masters is HPM0_FPD; GP2 and GP3 of the slaves are HP0_FPD and HP1_FPD.
    set_property -dict [list \
        CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ $rasna(clock_mhz) \
        CONFIG.PSU__USE__M_AXI_GP0 1 \
        CONFIG.PSU__USE__M_AXI_GP1 0 \
        CONFIG.PSU__USE__M_AXI_GP2 0 \
        CONFIG.PSU__USE__S_AXI_GP2 1 \
        CONFIG.PSU__SAXIGP2__DATA_WIDTH $rasna(port_bits) \
        CONFIG.PSU__USE__S_AXI_GP3 1 \
        CONFIG.PSU__SAXIGP3__DATA_WIDTH $rasna(port_bits) \
        CONFIG.PSU__USE__IRQ0 1 \
    ] $ps
    set ps_clock ps/pl_clk0
    set ps_clock_sinks {ps/maxihpm0_fpd_aclk ps/saxihp0_fpd_aclk ps/saxihp1_fpd_aclk}
    set ps_reset ps/pl_resetn0
    set ps_irq ps/pl_ps_irq0
    set ps_control ps/M_AXI_HPM0_FPD
    set ps_program ps/S_AXI_HP1_FPD
    set ps_data ps/S_AXI_HP0_FPD
    set ps_space ps/Data
    set ps_program_segment ps/SAXIGP3/HP1_DDR_LOW
    set ps_data_segment ps/SAXIGP2/HP0_DDR_LOW
}
