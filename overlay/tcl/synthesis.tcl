# Synthesis and its utilisation report. Not run with Vivado by this project yet.
source [lindex $argv 0]

open_project $rasna(project_dir)/rasna.xpr
reset_run synth_1
launch_runs synth_1 -jobs $rasna(jobs)
wait_on_run synth_1
if {[get_property PROGRESS [get_runs synth_1]] ne "100%"} {
    error "synthesis failed: [get_property STATUS [get_runs synth_1]]"
}
open_run synth_1
report_utilization -file $rasna(report_dir)/utilization_synthesis.rpt
close_project
