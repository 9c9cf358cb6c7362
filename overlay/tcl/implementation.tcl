# Place, route, reports, bitstream. The bitstream is written when timing is met only. Not run with Vivado by this project yet.
source [lindex $argv 0]

open_project $rasna(project_dir)/rasna.xpr
reset_run impl_1
launch_runs impl_1 -jobs $rasna(jobs)
wait_on_run impl_1
if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} {
    error "implementation failed: [get_property STATUS [get_runs impl_1]]"
}
open_run impl_1
report_utilization -file $rasna(report_dir)/utilization.rpt
report_timing_summary -file $rasna(report_dir)/timing.rpt
set slack [get_property SLACK [get_timing_paths -max_paths 1 -nworst 1 -setup]]
if {$slack < 0} {
    error "timing is not met: worst setup slack $slack ns at $rasna(clock_mhz) MHz"
}
write_bitstream -force $rasna(report_dir)/rasna.bit
close_project
