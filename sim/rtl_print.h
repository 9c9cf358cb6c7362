/* Included before everything in the verilated object (-include): what the RTL prints goes to the run that it belongs to,
 * not to standard output. VL_PRINTF is Verilator's hook for it. */
#ifndef RASNA_SIM_RTL_PRINT_H
#define RASNA_SIM_RTL_PRINT_H

#ifdef __cplusplus
extern "C" __attribute__((format(printf, 1, 2))) int rasna_rtl_printf(const char *format, ...);
#define VL_PRINTF rasna_rtl_printf
#endif

#endif
