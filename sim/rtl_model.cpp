// Clock, host and observation of the verilated accelerator.
#include "rtl_model.h"

#include <stdarg.h>
#include <stdio.h>

#include "Vrasna_accelerator___024root.h"
#include "rtl_constants.h"

namespace {

// Where the RTL that this thread evaluates prints to. One line of a report is short.
thread_local std::string *print_to = nullptr;
constexpr size_t MAX_PRINTED = 4096;

}  // namespace

extern "C" int rasna_rtl_printf(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (print_to && print_to->size() < MAX_PRINTED) *print_to += text;
    return length;
}

namespace rasna {

RtlModel::RtlModel(Bus &bus, uint64_t seed) : bus_(bus), context_(new VerilatedContext) {
    enter();
    context_->randReset(2);
    context_->randSeed(static_cast<int>(seed % 0x7fffffff) + 1);
    context_->fatalOnError(false);  // a $fatal of the RTL ends the run, never the process
    top_.reset(new Vrasna_accelerator(context_.get()));
    bind();
    // inputs begin with random values as well: a host drives its own
    top_->s_axi_awvalid = top_->s_axi_wvalid = top_->s_axi_bready = top_->s_axi_arvalid = top_->s_axi_rready = 0;
    top_->aresetn = 0;
    for (int i = 0; i < 8; i++) tick();
    top_->aresetn = 1;
    for (int i = 0; i < 4; i++) tick();
}

RtlModel::~RtlModel() {
    enter();
    top_->final();
    top_.reset();  // takes its scopes off the context of the thread
    print_to = nullptr;
    Verilated::threadContextp(nullptr);
}

// What Verilator's library keeps per thread is that of another model when several live or a thread changes.
void RtlModel::enter() {
    print_to = &printed_;
    Verilated::threadContextp(context_.get());
}

#define RASNA_BIND(port, prefix, signal) (port).signal = &top_->m_axi_##prefix##_##signal

void RtlModel::bind() {
    program_.name = "program", read_.name = write_.name = "data";
#define RASNA_BIND_READ(port, prefix)                                                              \
    RASNA_BIND(port, prefix, araddr), RASNA_BIND(port, prefix, arlen), RASNA_BIND(port, prefix, arvalid), \
        RASNA_BIND(port, prefix, arready), RASNA_BIND(port, prefix, rdata), RASNA_BIND(port, prefix, rresp), \
        RASNA_BIND(port, prefix, rlast), RASNA_BIND(port, prefix, rvalid), RASNA_BIND(port, prefix, rready)
    RASNA_BIND_READ(program_, program);
    RASNA_BIND_READ(read_, data);
    RASNA_BIND(write_, data, awaddr), RASNA_BIND(write_, data, awlen), RASNA_BIND(write_, data, awvalid);
    RASNA_BIND(write_, data, awready), RASNA_BIND(write_, data, wdata), RASNA_BIND(write_, data, wstrb);
    RASNA_BIND(write_, data, wlast), RASNA_BIND(write_, data, wvalid), RASNA_BIND(write_, data, wready);
    RASNA_BIND(write_, data, bresp), RASNA_BIND(write_, data, bvalid), RASNA_BIND(write_, data, bready);
}

void RtlModel::tick() {
    program_.drive(bus_, cycle_), read_.drive(bus_, cycle_), write_.drive(bus_, cycle_);
    top_->aclk = 0;
    top_->eval();
    if (cycles_) count_cycle();
    if (top_->aresetn) program_.sample(bus_, cycle_), read_.sample(bus_, cycle_), write_.sample(bus_, cycle_);
    context_->timeInc(1);
    top_->aclk = 1;
    top_->eval();
    cycle_++;
}

void RtlModel::count_cycle() {
    const auto &root = *top_->rootp;
    if (!root.rasna_accelerator__DOT__kernel_start) return;
    const uint64_t pc = root.rasna_accelerator__DOT__kernel_pc;
    stale_pc_ = stale_pc_ && pc != 0;
    instruction_ = stale_pc_ ? 0 : pc;
    if (instruction_ < cycles_->size()) (*cycles_)[instruction_]++;
}

void RtlModel::write_register(uint32_t offset, uint32_t value) {
    enter();
    top_->s_axi_awaddr = static_cast<uint8_t>(offset), top_->s_axi_wdata = value, top_->s_axi_wstrb = 0xf;
    top_->s_axi_awvalid = top_->s_axi_wvalid = top_->s_axi_bready = 1;
    tick();  // the slave takes both at once
    top_->s_axi_awvalid = top_->s_axi_wvalid = 0;
    while (!top_->s_axi_bvalid) tick();
    tick();
    top_->s_axi_bready = 0;
}

uint32_t RtlModel::read_register(uint32_t offset) {
    enter();
    top_->s_axi_araddr = static_cast<uint8_t>(offset);
    top_->s_axi_arvalid = top_->s_axi_rready = 1;
    tick();
    top_->s_axi_arvalid = 0;
    while (!top_->s_axi_rvalid) tick();
    const uint32_t value = top_->s_axi_rdata;
    tick();
    top_->s_axi_rready = 0;
    return value;
}

void RtlModel::run(uint64_t timeout_cycles, std::vector<uint64_t> &cycles) {
    printed_.clear();
    cycles_ = &cycles;
    stale_pc_ = true;
    instruction_ = 0;
    write_register(REGISTER_CONTROL, CONTROL_START | CONTROL_IRQ_ENABLE);
    const uint64_t limit = cycle_ + timeout_cycles;
    while (!top_->irq) {
        tick();
        if (!printed_.empty()) {
            for (int i = 0; i < 4; i++) tick();  // all processes report
            timed_out(printed_);
        }
        if (cycle_ >= limit) timed_out("more than " + std::to_string(timeout_cycles) + " cycles");
    }
    cycles_ = nullptr;
    write_register(REGISTER_IRQ_CLEAR, 1);
}

void RtlModel::timed_out(const std::string &why) {
    std::string text = "instruction " + std::to_string(instruction_) + ": " + error_text(ERROR_TIMEOUT) + ": " + why;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    fail(ERROR_TIMEOUT, text, static_cast<int64_t>(instruction_));
}

}  // namespace rasna
