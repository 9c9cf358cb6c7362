// hls::burst_maxi for the two open flows: simulation by g++/clang, and rtl/hlsc (__HLSC__).
// Bulk data moves by explicit bursts: request (offset and length in elements of T), then as many reads or writes.
// Under Vitis HLS the vendor's own hls_burst_maxi.h is used; only what both offer is declared here.
#pragma once
#include <stddef.h>

#ifdef __HLSC__

extern "C" {
void __hls_mrq(const void *port, unsigned offset, unsigned num_elems);
void __hls_mrd(const void *port, void *element, size_t num_bytes);
void __hls_mwq(const void *port, unsigned offset, unsigned num_elems);
void __hls_mwr(const void *port, const void *element, size_t num_bytes);
void __hls_mwb(const void *port);
}

namespace hls {

template <class T>
struct burst_maxi {
  T *base_;
  void read_request(size_t offset, size_t num_elems) { __hls_mrq(base_, (unsigned)offset, (unsigned)num_elems); }
  T read() {
    T element;
    __hls_mrd(base_, &element, sizeof(T));
    return element;
  }
  void write_request(size_t offset, size_t num_elems) { __hls_mwq(base_, (unsigned)offset, (unsigned)num_elems); }
  void write(const T &element) {
    T copy = element;
    __hls_mwr(base_, &copy, sizeof(T));
  }
  void write_response() { __hls_mwb(base_); }
};

}  // namespace hls

#else

#include <deque>
#include <stdexcept>

namespace hls {

// A burst outside [0, num_elems) throws. The protocol is checked too: no read or write without a request, no response
// before the last write of a burst.
template <class T>
class burst_maxi {
 public:
  burst_maxi(T *base, size_t num_elems = ~(size_t)0) : base_(base), num_elems_(num_elems) {}

  void read_request(size_t offset, size_t num_elems) { push(reads_, offset, num_elems); }
  T read() { return *take(reads_); }
  void write_request(size_t offset, size_t num_elems) {
    push(writes_, offset, num_elems);
    ++responses_;
  }
  void write(const T &element) { *take(writes_) = element; }
  void write_response() {
    if (responses_ == 0) throw std::logic_error("burst_maxi: write_response without a write_request");
    if (responses_-- == writes_.size()) throw std::logic_error("burst_maxi: write_response before the last write of its burst");
  }

 private:
  struct burst {
    T *next;
    size_t num_left;
  };
  void push(std::deque<burst> &queue, size_t offset, size_t num_elems) {
    if (offset > num_elems_ || num_elems > num_elems_ - offset)
      throw std::out_of_range("burst_maxi: burst outside of its memory");
    if (num_elems) queue.push_back(burst{base_ + offset, num_elems});
  }
  T *take(std::deque<burst> &queue) {
    if (queue.empty()) throw std::logic_error("burst_maxi: access without a request");
    T *element = queue.front().next++;
    if (--queue.front().num_left == 0) queue.pop_front();
    return element;
  }

  T *base_;
  size_t num_elems_;
  std::deque<burst> reads_, writes_;
  size_t responses_ = 0;
};

}  // namespace hls

#endif
