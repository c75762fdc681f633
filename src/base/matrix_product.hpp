// Products of large matrices at the speed of the multiply-add instructions, with the same bits for any number
// of threads.
//
//   C = A B        multiply()
//   C = A^T B      multiply_transposed()
//
// Every entry of C is a sum over k from the first to the last, so blocks, tiles and threads leave no trace in it, and
// equal rows of A give equal rows of C. Internal.
#pragma once

#include <attmirror/base/matrix.hpp>
#include <attmirror/base/thread_pool.hpp>

#include <cstddef>

namespace attmirror {

// A matrix whose columns are divided into panels: those of one panel lie side by side in memory, row after row. Who
// works on some columns of all rows then has a compact piece of memory. A padded matrix is a single panel.
template <class T>
struct Panels {
  T* data = nullptr;
  std::ptrdiff_t rows = 0, cols = 0;
  std::ptrdiff_t stride = 0;             // from row to row
  std::ptrdiff_t width = 0, offset = 0;  // columns of a panel, a multiple of 16; from panel to panel

  std::ptrdiff_t count() const { return (cols + width - 1) / width; }
  T* panel(std::ptrdiff_t p) const { return data + p * offset; }
  T* place(std::ptrdiff_t row, std::ptrdiff_t col) const {
    return data + col / width * offset + row * stride + col % width;
  }
  T& at(std::ptrdiff_t row, std::ptrdiff_t col) const { return *place(row, col); }
  operator Panels<const T>() const { return {data, rows, cols, stride, width, offset}; }
};

inline Panels<double> one_panel(MatrixView m) {
  return {m.data, m.rows, m.cols, m.stride, (m.cols + 15) / 16 * 16, 0};
}
inline Panels<const double> one_panel(ConstMatrixView m) {
  return {m.data, m.rows, m.cols, m.stride, (m.cols + 15) / 16 * 16, 0};
}

// A matrix in panels of 64 columns that owns its memory; starts as zeros. Where there are fewer columns the panel is
// narrower. Rows are whole vectors of any instruction set, with zeros beyond the last column.
class PanelMatrix {
 public:
  static constexpr std::ptrdiff_t panel_width = 64;

  PanelMatrix() = default;
  PanelMatrix(std::ptrdiff_t rows, std::ptrdiff_t cols);
  Panels<double> view() { return {values_.data(), rows_, cols_, width_, width_, rows_ * width_}; }
  Panels<const double> view() const { return {values_.data(), rows_, cols_, width_, width_, rows_ * width_}; }

 private:
  std::ptrdiff_t rows_ = 0, cols_ = 0, width_ = 16;
  AlignedVector values_;
};

void copy(ConstMatrixView from, Panels<double> to, ThreadPool& pool);
void copy(Panels<const double> from, MatrixView to, ThreadPool& pool);

// Holds the memory into which blocks of A and B are copied; grows to the largest product and stays.
class MatrixProduct {
 public:
  explicit MatrixProduct(ThreadPool& pool) : pool_(&pool) {}

  // Sets the memory up for C of so many rows and columns: then products of that size allocate nothing.
  void reserve(std::ptrdiff_t rows, std::ptrdiff_t cols);
  void multiply(ConstMatrixView A, Panels<const double> B, Panels<double> C);
  void multiply_transposed(ConstMatrixView A, Panels<const double> B, Panels<double> C);

 private:
  enum class Side { plain, transposed };
  void run(ConstMatrixView A, Side side, Panels<const double> B, Panels<double> C);

  ThreadPool* pool_;
  AlignedVector rows_, strips_;
};

}  // namespace attmirror
