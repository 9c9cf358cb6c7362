# The processing system of Zynq UltraScale+, with the board's own settings for memory and pins.

proc create_processing_system {} {
    global rasna ps_clock ps_clock_sinks ps_reset ps_irq ps_control ps_program ps_data
    global ps_space ps_program_segment ps_data_segment
    set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:zynq_ultra_ps_e ps]
    apply_bd_automation -rule xilinx.com:bd_rule:zynq_ultra_ps_e -config {apply_board_preset 1} $ps
    # M_AXI_HPM0_FPD is GP0 of the masters, S_AXI_HP0_FPD to S_AXI_HP3_FPD are GP2 to GP5 of the slaves.
    scan $rasna(program_port) S_AXI_HP%d_FPD program
    scan $rasna(data_port) S_AXI_HP%d_FPD data
    set program_gp [expr {$program + 2}]
    set data_gp [expr {$data + 2}]
    set clock_of {M_AXI_ maxi S_AXI_ saxi HP hp M m FPD fpd}
    # A board's preset may have enabled a port that nothing here clocks.
    set_property -dict [list \
        CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ $rasna(clock_mhz) \
        CONFIG.PSU__USE__M_AXI_GP0 [expr {$rasna(control_port) eq "M_AXI_HPM0_FPD"}] \
        CONFIG.PSU__USE__M_AXI_GP1 [expr {$rasna(control_port) eq "M_AXI_HPM1_FPD"}] \
        CONFIG.PSU__USE__M_AXI_GP2 0 \
        CONFIG.PSU__USE__S_AXI_GP$data_gp 1 \
        CONFIG.PSU__SAXIGP${data_gp}__DATA_WIDTH $rasna(port_bits) \
        CONFIG.PSU__USE__S_AXI_GP$program_gp 1 \
        CONFIG.PSU__SAXIGP${program_gp}__DATA_WIDTH $rasna(port_bits) \
        CONFIG.PSU__USE__IRQ0 1 \
    ] $ps
    set ps_clock ps/pl_clk0
    set ps_clock_sinks {}
    foreach port [list $rasna(control_port) $rasna(data_port) $rasna(program_port)] {
        lappend ps_clock_sinks ps/[string map $clock_of $port]_aclk
    }
    set ps_reset ps/pl_resetn0
    set ps_irq ps/pl_ps_irq0
    set ps_control ps/$rasna(control_port)
    set ps_program ps/$rasna(program_port)
    set ps_data ps/$rasna(data_port)
    set ps_space ps/Data
    set ps_program_segment ps/SAXIGP$program_gp/HP${program}_DDR_LOW
    set ps_data_segment ps/SAXIGP$data_gp/HP${data}_DDR_LOW
}
