// hls::stream for the two open flows: simulation by g++/clang, and rtl/hlsc (__HLSC__).
// Under Vitis HLS the vendor's own hls_stream.h is used; only what both offer is declared here.
#pragma once
#include <stddef.h>

#ifdef __HLSC__

extern "C" {
void __hls_rd(const void *stream, void *token, size_t num_bytes);
void __hls_wr(const void *stream, const void *token, size_t num_bytes);
void __hls_stream_depth(const void *stream, int depth);
}

namespace hls {

template <class T, int DEPTH = 0>
struct stream;

// One token per read or write; a token is a scalar or a struct of scalars and arrays.
template <class T>
struct stream<T, 0> {
  char unused_;
  stream() { __hls_stream_depth(this, 2); }
  explicit stream(const char *) { __hls_stream_depth(this, 2); }
  stream(const stream &) = delete;
  T read() {
    T token;
    __hls_rd(this, &token, sizeof(T));
    return token;
  }
  void read(T &token) { token = read(); }
  void write(const T &token) {
    T copy = token;
    __hls_wr(this, &copy, sizeof(T));
  }
};

// Processes take hls::stream<T> &; the depth belongs to the declaration.
template <class T, int DEPTH>
struct stream : stream<T, 0> {
  stream() { __hls_stream_depth(this, DEPTH); }
  explicit stream(const char *) { __hls_stream_depth(this, DEPTH); }
};

}  // namespace hls

#else

#include <stdexcept>
#include <string>
#include <vector>

namespace hls {

// Unbounded in simulation: depth is a property of the hardware only. Reading an empty stream throws, because a
// blocking read can never be satisfied when processes run one after another.
template <class T, int DEPTH = 0>
class stream;

template <class T>
class stream<T, 0> {
 public:
  stream() = default;
  explicit stream(const char *name) : name_(name) {}
  stream(const stream &) = delete;

  T read() {
    if (head_ == tokens_.size())
      throw std::runtime_error(std::string("read of the empty stream ") + name_);
    T token = tokens_[head_++];
    if (head_ == tokens_.size()) {
      tokens_.clear();
      head_ = 0;
    }
    return token;
  }
  void read(T &token) { token = read(); }
  void write(const T &token) { tokens_.push_back(token); }
  bool empty() const { return head_ == tokens_.size(); }
  size_t size() const { return tokens_.size() - head_; }

 private:
  const char *name_ = "(unnamed)";
  std::vector<T> tokens_;
  size_t head_ = 0;
};

template <class T, int DEPTH>
class stream : public stream<T, 0> {
 public:
  using stream<T, 0>::stream;
};

}  // namespace hls

#endif
