#include "weights/gather.hpp"

#include <mekik/numbers.hpp>

#include <algorithm>
#include <cstring>

namespace mekik::weights {

namespace {

constexpr std::size_t kPanelBytes = std::size_t{1} << 20;  // of one read that is then picked apart
constexpr std::uint64_t kShortRun = 4;                     // rows
constexpr std::uint64_t kMaxSpread = 4;                    // rows read for each row wanted

// The last row of a run, or nothing when it leaves 0 .. rows.
bool last_row(std::uint64_t first, std::uint64_t count, std::int64_t step, std::uint64_t rows, std::uint64_t& last) {
  if (first >= rows || count > static_cast<std::uint64_t>(INT64_MAX) || rows > static_cast<std::uint64_t>(INT64_MAX)) return false;
  std::int64_t moved = 0, end = 0;
  if (__builtin_mul_overflow(static_cast<std::int64_t>(count - 1), step, &moved)) return false;
  if (__builtin_add_overflow(static_cast<std::int64_t>(first), moved, &end)) return false;
  last = static_cast<std::uint64_t>(end);
  return end >= 0 && last < rows;
}

std::uint64_t row_of(const Gather::Run& run, std::uint64_t i) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(run.first) + static_cast<std::int64_t>(i) * run.step);
}

// Byte range of columns column0 .. column0 + k of member i.
std::size_t cut_offset(const mekik_form& form, std::size_t i, std::uint64_t column0) {
  const std::uint64_t groups = form.group_k != 0 ? column0 / form.group_k : 0, supers = form.super_k != 0 ? column0 / form.super_k : 0;
  switch (i) {
    case 0:
      return column0;
    case 1:
      return groups * num_size(form.scale_num);
    case 2:
      return supers * num_size(form.super_num);
    case 3:
      return groups * num_size(form.min_num);
    case 4:
      return supers * num_size(form.super_min_num);
    case 5:
      return groups * num_size(form.zero_num);
    default:
      return form.kind == MEKIK_FORM_FLOAT ? column0 * num_size(form.kept_num) : 0;
  }
}

}  // namespace

Result<Gather> Gather::make(const program::WeightRecipe& recipe, const std::function<const Source*(std::uint32_t)>& source) {
  Gather gather;
  gather.column0_ = recipe.column0;
  gather.k_ = recipe.k;
  std::uint64_t at = 0;
  for (const program::RowRun& run : recipe.rows) {
    if (run.count == 0) continue;
    const Source* from = source(run.source);
    std::uint64_t last = 0, end = 0;
    if (!last_row(run.first, run.count, run.step, from->n_rows(), last))
      return internal_error("weight \"" + recipe.symbol + "\" takes rows that tensor \"" + from->name() + "\" does not have");
    if (__builtin_add_overflow(recipe.column0, recipe.k, &end) || end > from->k())
      return internal_error("weight \"" + recipe.symbol + "\" takes columns that tensor \"" + from->name() + "\" does not have");
    gather.runs_.push_back({from, run.first, run.count, run.count == 1 ? 1 : run.step, at});
    at += run.count;
  }
  if (at != recipe.experts * recipe.n)
    return internal_error("weight \"" + recipe.symbol + "\" is made of " + std::to_string(at) + " rows, but has " +
                          std::to_string(recipe.experts * recipe.n));
  return gather;
}

bool Gather::in_whole_groups(std::uint64_t n) const {
  return std::all_of(runs_.begin(), runs_.end(), [n](const Run& run) {
    const std::uint64_t group = run.source->form()->group_n, rows = run.source->n_rows() / run.source->experts();
    const bool whole = run.step == 1 && run.first % rows % group == 0 && run.at % n % group == 0;
    const bool ends = run.count % group == 0 || ((run.first + run.count) % rows == 0 && (run.at + run.count) % n == 0);
    return whole && ends && (run.count <= n - run.at % n || (n % group == 0 && rows % group == 0) || n == rows);
  });
}

// The scale of the whole tensor that the rows of each expert have; false: those of one expert differ.
bool Gather::one_scale_each(std::uint64_t n, std::vector<float>& scales) const {
  if (runs_[0].source->form()->tensor_scale == nullptr) return true;
  std::vector<bool> known(scales.size(), false);
  for (const Run& run : runs_) {
    const std::uint64_t each = run.source->n_rows() / run.source->experts();
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const std::uint64_t to = (run.at + i) / n;
      const float scale = run.source->form()->tensor_scale[row_of(run, i) / each];
      if (known[to] && std::memcmp(&scales[to], &scale, sizeof scale) != 0) return false;
      scales[to] = scale;
      known[to] = true;
    }
  }
  return true;
}

std::vector<float> Gather::tensor_scales(std::uint64_t experts, std::uint64_t n) const {
  if (runs_[0].source->form()->tensor_scale == nullptr) return {};
  std::vector<float> scales(experts);
  one_scale_each(n, scales);
  return scales;
}

const mekik_form* Gather::common_form(std::uint64_t experts, std::uint64_t n, std::string& why) const {
  const Source& first = *runs_[0].source;
  const mekik_form* form = first.form();
  for (const Run& run : runs_)
    if (run.source->form() == nullptr) {
      why = run.source->scheme() + " has no form";
      if (!run.source->why_no_form().empty()) why += " (" + run.source->why_no_form() + ")";
      return nullptr;
    }
  const Run& whole = runs_[0];
  const bool identity =
      runs_.size() == 1 && whole.first == 0 && whole.step == 1 && whole.count == first.n_rows() && first.experts() == experts;
  for (const Run& run : runs_)
    if (!identity && run.source != &first && !same_form(*form, *run.source->form())) {
      why = first.scheme() + " and " + run.source->scheme() + " are joined, whose forms differ";
      return nullptr;
    }
  std::vector<float> scales(experts);
  if (!one_scale_each(n, scales)) why = "it joins rows of tensors that have different scales each";
  else if (form->group_n > 1 && !in_whole_groups(n)) why = "rows that share a scale are taken apart";
  else if (!can_cut(*form, column0_, column0_ + k_)) why = "its columns are cut inside a group of " + first.scheme();
  else return form;
  return nullptr;
}

std::vector<Gather::Piece> Gather::pieces(std::uint64_t a, std::uint64_t b, std::size_t row_bytes) const {
  const std::uint64_t panel = std::max<std::uint64_t>(1, kPanelBytes / std::max<std::size_t>(1, row_bytes));
  std::vector<Piece> out;
  auto run = std::upper_bound(runs_.begin(), runs_.end(), a, [](std::uint64_t row, const Run& r) { return row < r.at; }) - 1;
  for (; a < b; ++run) {
    const std::uint64_t end = std::min(b, run->at + run->count);
    const mekik_form* form = run->source->form();
    // Very short runs are gathered like strided ones; where rows share a scale, runs are whole groups and stay together.
    if (run->step == 1 && (run->count >= kShortRun || (form != nullptr && form->group_n > 1))) {
      const std::uint64_t low = row_of(*run, a - run->at);
      out.push_back({run->source, low, low + (end - a), {}});
      a = end;
      continue;
    }
    for (; a < end; ++a) {
      const std::uint64_t row = row_of(*run, a - run->at);
      Piece* last = out.empty() ? nullptr : &out.back();
      // Neighbouring runs often interleave (the two halves of a head): one read serves them while it stays dense.
      if (last != nullptr && !last->wanted.empty() && last->source == run->source) {
        const std::uint64_t low = std::min(last->low, row), high = std::max(last->high, row + 1);
        if (high - low <= panel && high - low <= kMaxSpread * (last->wanted.size() + 1)) {
          last->low = low;
          last->high = high;
          last->wanted.push_back(row);
          continue;
        }
      }
      out.push_back({run->source, row, row + 1, {row}});
    }
  }
  return out;
}

Status Gather::decode(std::uint64_t a, std::uint64_t b, float* out) const {
  std::vector<float> buffer;
  for (const Piece& piece : pieces(a, b, runs_[0].source->k() * sizeof(float))) {
    const std::uint64_t wide = piece.source->k();
    if (piece.wanted.empty() && wide == k_) {
      MEKIK_CHECK_OK(piece.source->decode(piece.low, piece.high - piece.low, out));
      out += piece.count() * k_;
      continue;
    }
    const std::uint64_t panel = std::max<std::uint64_t>(1, kPanelBytes / (wide * sizeof(float)));
    const std::uint64_t at_once = piece.wanted.empty() ? panel : piece.high - piece.low;
    for (std::uint64_t low = piece.low; low < piece.high; low += at_once) {
      const std::uint64_t high = std::min(piece.high, low + at_once), count = piece.wanted.empty() ? high - low : piece.count();
      buffer.resize((high - low) * wide);
      MEKIK_CHECK_OK(piece.source->decode(low, high - low, buffer.data()));
      for (std::uint64_t i = 0; i < count; ++i, out += k_) {
        const std::uint64_t row = piece.wanted.empty() ? i : piece.wanted[i] - low;
        std::copy_n(buffer.data() + row * wide + column0_, k_, out);
      }
    }
  }
  return {};
}

Status Gather::copy_piece(const Piece& piece, const FormLayout& stored, const FormLayout& cut, const mekik_form_rows& out) const {
  const mekik_form& form = *piece.source->form();
  FormBuffer buffer{stored, piece.high - piece.low};
  MEKIK_CHECK_OK(piece.source->rows(piece.low, piece.high - piece.low, buffer.rows()));
  const MemberPointers from{buffer.rows()}, to{out};
  for (std::size_t i = 0; i < FormLayout::kMembers; ++i) {
    const std::size_t bytes = cut.members[i].row_bytes, wide = stored.members[i].row_bytes;
    if (bytes == 0) continue;
    const std::size_t offset = cut_offset(form, i, column0_);
    // Pieces that are picked apart have groups of one row; whole ones keep theirs.
    const std::uint64_t group = stored.members[i].grouped ? stored.group_n : 1, count = (piece.count() + group - 1) / group;
    for (std::uint64_t row = 0; row < count; ++row) {
      const std::uint64_t at = piece.wanted.empty() ? row : piece.wanted[row] - piece.low;
      std::memcpy(to.at[i] + row * bytes, from.at[i] + at * wide + offset, bytes);
    }
  }
  return {};
}

Status Gather::rows(std::uint64_t a, std::uint64_t b, const mekik_form_rows& out) const {
  const mekik_form& form = *runs_[0].source->form();
  mekik_form narrow = form;
  narrow.k = k_;
  const FormLayout stored{form}, cut{narrow};
  MemberPointers to{out};
  const std::uint64_t panel = std::max<std::uint64_t>(1, kPanelBytes / stored.bytes(1)) * stored.group_n;
  for (Piece& piece : pieces(a, b, stored.bytes(1))) {
    const bool direct = piece.wanted.empty() && form.k == k_;
    while (piece.low < piece.high) {
      Piece part = piece;
      if (!direct && piece.wanted.empty()) part.high = std::min(piece.high, piece.low + panel);
      if (direct) MEKIK_CHECK_OK(part.source->rows(part.low, part.high - part.low, to.rows()));
      else MEKIK_CHECK_OK(copy_piece(part, stored, cut, to.rows()));
      for (std::size_t i = 0; i < FormLayout::kMembers; ++i) {
        const Member& member = cut.members[i];
        if (to.at[i] == nullptr) continue;
        to.at[i] += member.row_bytes * (member.grouped ? (part.count() + cut.group_n - 1) / cut.group_n : part.count());
      }
      piece.low = part.high;
    }
  }
  return {};
}

}  // namespace mekik::weights
