// Where a backend begins: the reference runs everything, and `linear`, in which a model spends its time, is replaced by a kernel that
// decodes each row of the weight once a step and sums in eight lanes of F32. One operation after the other can follow.
#include <reference/backend/device.hpp>
#include <reference/operands.hpp>

namespace {

using mekik::reference::Rows;

class Exec : public mekik::reference_backend::Exec {
 public:
  static constexpr const char* kKernels = "thin 1";  // sums round otherwise than the reference's
  using mekik::reference_backend::Exec::Exec;

 private:
  void run(std::uint32_t index, const mekik::reference::Step& step) override {
    const mekik::reference::Operands o{program(), index, memory(), step};
    if (o.op().code != mekik::op::linear) return mekik::reference_backend::Exec::run(index, step);
    for (std::uint32_t i = 0; i < o.op().n_out; ++i) linear(o.rows(0), o.weight(1 + 2 * i), o.flat(2 + 2 * i), o.out(i));
  }

  // y[t][n] = sum over k of x[t][k] w[n][k], + bias[n]. Each sum in the same order whatever else is in the step.
  static void linear(const Rows& x, const mekik::reference::Weight& w, const mekik::reference::Flat& bias, const Rows& y) {
    const auto n_rows = static_cast<std::uint32_t>(w.n_rows());
    mekik::parallel(n_rows, [&](std::uint32_t n) {
      thread_local std::vector<float> row;
      row.resize(w.k());
      w.decode(n, n + 1, row.data());
      for (std::size_t t = 0; t < x.n; ++t) y.row(t)[n] = dot(x.row(t), row) + (bias.empty() ? 0.0f : bias[n]);
    });
  }
  static float dot(const float* x, const std::vector<float>& w) {
    float lanes[8] = {}, sum = 0;
    const std::size_t whole = w.size() / 8 * 8;
    for (std::size_t k = 0; k < whole; k += 8)
      for (std::size_t i = 0; i < 8; ++i) lanes[i] += x[k + i] * w[k + i];
    for (const float lane : lanes) sum += lane;
    for (std::size_t k = whole; k < w.size(); ++k) sum += x[k] * w[k];
    return sum;
  }
};

class Thin : public mekik::reference_backend::Device<Exec> {
 public:
  static constexpr const char *name = "thin", *version = "1.0", *summary = "The reference with a linear of its own.";
  using Device::Device;
};

}  // namespace

MEKIK_PLUGIN("org.example.thin", "1.0", mekik::backend<Thin>());
