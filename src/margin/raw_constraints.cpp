// Each problem is written down here a second time, on purpose: a mistake in constraints() (problems.cpp) then shows
// as a violation or a gap instead of confirming itself.
#include "margin/raw_constraints.hpp"

#include <algorithm>
#include <cmath>

namespace attmirror {

namespace {

class ArrayReader : public RawConstraints {
 public:
  explicit ArrayReader(const MarginConstraints& constraints) : constraints_(constraints) {}
  std::ptrdiff_t rows() const override { return constraints_.rows(); }
  std::ptrdiff_t cols() const override { return constraints_.cols(); }
  std::ptrdiff_t groups() const override { return constraints_.groups(); }
  std::ptrdiff_t roundings() const override { return 0; }
  void load(std::ptrdiff_t g, RawGroup& group, Digits) const override {
    const ConstMatrixView left = constraints_.left(), right = constraints_.right();
    group.start(right.data + g * right.stride);
    for (std::ptrdiff_t k = constraints_.first(g); k < constraints_.first(g + 1); ++k) {
      const double* a = left.data + k * left.stride;
      group.left.insert(group.left.end(), a, a + left.cols);
      group.add(constraints_.bounds()[static_cast<std::size_t>(k)],
                constraints_.relations()[static_cast<std::size_t>(k)]);
    }
  }

 private:
  const MarginConstraints& constraints_;
};

// Reads tokens, queries, labels and masks; a group is a query.
class DatasetReader : public RawConstraints {
 public:
  DatasetReader(const Dataset& data, const MarginProblem& problem) : data_(data), problem_(problem) {
    validate(data, problem);
  }
  std::ptrdiff_t rows() const override { return data_.dim(); }
  std::ptrdiff_t cols() const override { return is_vector() ? 1 : data_.dim(); }
  std::ptrdiff_t groups() const override { return data_.total_queries(); }
  std::ptrdiff_t roundings() const override { return has_keys() ? data_.dim() + 2 : 1; }

  void load(std::ptrdiff_t j, RawGroup& group, Digits digits) const override {
    static constexpr double one = 1;
    group.with_rest = digits == Digits::of_left_and_rest;
    const ConstMatrixView queries = data_.queries();
    group.start(is_vector() ? &one : queries.data + j * queries.stride);
    std::visit([&](const auto& svm) { add(svm, j, group); }, problem_);
  }

 private:
  bool is_vector() const {
    return std::holds_alternative<PromptSvm>(problem_) || std::holds_alternative<DecoderSvm>(problem_);
  }
  bool has_keys() const {
    const auto* prompt = std::get_if<PromptSvm>(&problem_);
    return prompt && prompt->key_weights.size() != 0;
  }

  const double* token(std::ptrdiff_t j, std::ptrdiff_t t) const {
    const ConstMatrixView tokens = data_.tokens(data_.sequence_of(j));
    return tokens.data + t * tokens.stride;
  }
  void add_difference(std::ptrdiff_t j, std::ptrdiff_t o, std::ptrdiff_t t, RawGroup& group) const {
    const double *first = token(j, o), *second = token(j, t);
    if (!group.with_rest) {
      for (std::ptrdiff_t i = 0; i < data_.dim(); ++i)
        group.left.push_back(static_cast<Real>(first[i]) - static_cast<Real>(second[i]));
      return;
    }
    for (std::ptrdiff_t i = 0; i < data_.dim(); ++i) {
      Twofold difference{first[i]};
      difference.add(-static_cast<Real>(second[i]));
      group.left.push_back(difference.high);
      group.rest.push_back(difference.low);
    }
  }
  void add_key_difference(const Matrix& A, std::ptrdiff_t j, std::ptrdiff_t o, std::ptrdiff_t t,
                          RawGroup& group) const {
    const double *first = token(j, o), *second = token(j, t);
    if (!group.with_rest) {
      for (std::ptrdiff_t i = 0; i < data_.dim(); ++i) {
        Real sum = 0, size = 0;
        for (std::ptrdiff_t l = 0; l < data_.dim(); ++l) {
          const Real term = A(i, l) * (static_cast<Real>(first[l]) - static_cast<Real>(second[l]));
          sum += term;
          size += std::fabs(term);
        }
        group.left.push_back(sum);
        group.sizes.push_back(size);
      }
      return;
    }
    for (std::ptrdiff_t i = 0; i < data_.dim(); ++i) {
      Twofold sum;
      Real size = 0;
      for (std::ptrdiff_t l = 0; l < data_.dim(); ++l) {
        Twofold difference{first[l]};
        difference.add(-static_cast<Real>(second[l]));
        sum.add_product(A(i, l), difference.high);
        sum.low += A(i, l) * difference.low;
        size += std::fabs(A(i, l) * difference.high);
      }
      sum = sum.normal();
      group.left.push_back(sum.high);
      group.rest.push_back(sum.low);
      group.sizes.push_back(size);
    }
  }

  void add(const AttentionSvm& svm, std::ptrdiff_t j, RawGroup& group) const {
    const auto query = static_cast<std::size_t>(j);
    for (std::ptrdiff_t t = 0; t < data_.length(data_.sequence_of(j)); ++t) {
      if (t == svm.tokens.tokens[query] || !data_.allows(j, t)) continue;
      add_difference(j, svm.tokens.tokens[query], t, group);
      group.add(svm.bounds.empty() ? 1 : svm.bounds[query], Relation::at_least);
    }
  }
  void add(const PromptSvm& svm, std::ptrdiff_t j, RawGroup& group) const {
    const auto query = static_cast<std::size_t>(j);
    for (std::ptrdiff_t t = 0; t < data_.length(data_.sequence_of(j)); ++t) {
      if (t == svm.tokens.tokens[query] || !data_.allows(j, t)) continue;
      if (has_keys())
        add_key_difference(svm.key_weights, j, svm.tokens.tokens[query], t, group);
      else
        add_difference(j, svm.tokens.tokens[query], t, group);
      group.add(svm.bounds.empty() ? 1 : svm.bounds[query], Relation::at_least);
    }
  }
  void add(const DecoderSvm& svm, std::ptrdiff_t j, RawGroup& group) const {
    const auto query = static_cast<std::size_t>(j);
    const double* x = token(j, svm.tokens.tokens[query]);
    // Exact: labels are -1 and 1.
    for (std::ptrdiff_t i = 0; i < data_.dim(); ++i) group.left.push_back(x[i] * data_.labels()[query]);
    group.add(1, Relation::at_least);
  }
  void add(const GeneralDirectionSvm& svm, std::ptrdiff_t j, RawGroup& group) const {
    const auto& kept = svm.kept.tokens[static_cast<std::size_t>(j)];
    for (std::size_t k = 1; k < kept.size(); ++k) {
      add_difference(j, kept[0], kept[k], group);
      group.add(0, Relation::equal);
    }
    for (std::ptrdiff_t t = 0; t < data_.length(data_.sequence_of(j)); ++t) {
      if (!data_.allows(j, t) || std::find(kept.begin(), kept.end(), t) != kept.end()) continue;
      add_difference(j, kept[0], t, group);
      group.add(1, Relation::at_least);
    }
  }
  void add(const GeneralFiniteSvm& svm, std::ptrdiff_t j, RawGroup& group) const {
    const auto& kept = svm.kept.tokens[static_cast<std::size_t>(j)];
    const Vector& logits = svm.logits[static_cast<std::size_t>(j)];
    for (std::size_t k = 1; k < kept.size(); ++k) {
      add_difference(j, kept[0], kept[k], group);
      group.add(static_cast<Real>(logits[kept[0]]) - static_cast<Real>(logits[kept[k]]), Relation::equal);
    }
  }

  const Dataset& data_;
  const MarginProblem& problem_;
};

}  // namespace

std::unique_ptr<RawConstraints> read_raw(const MarginConstraints& constraints) {
  return std::make_unique<ArrayReader>(constraints);
}

std::unique_ptr<RawConstraints> read_raw(const Dataset& data, const MarginProblem& problem) {
  return std::make_unique<DatasetReader>(data, problem);
}

}  // namespace attmirror
