# C++ to RTL with Vitis HLS (HLS=vitis). Not run with Vitis HLS by this project yet.
#   vitis_hls -f kernel.tcl settings.tcl
source [lindex $argv end]

open_project -reset $rasna(hls_project)
set_top rasna_vitis
add_files $rasna(hls_source) -cflags $rasna(hls_flags)
open_solution -reset solution -flow_target vivado
set_part $rasna(part)
create_clock -period $rasna(period_ns) -name default
config_interface -m_axi_addr64
config_interface -m_axi_max_widen_bitwidth 64
# rtl/top relies on it: an address is offered when all data of its burst is there
config_interface -m_axi_conservative_mode=true
csynth_design
close_project
exit
