// What batches may make use of, where the backend's plan lists it; and state groups with windows.
#include <cmath>

#include "programs.hpp"
#include "subject.hpp"
#include "support/catch.hpp"

namespace mekik::test {

namespace {

bool lists(Session& session, std::uint64_t use, const char* name) {
  const bool listed = (session.plan().uses & use) != 0;
  if (!listed) WARN(session.backend().name() << " does not list " << name);
  return listed;
}

std::vector<float> row(const std::vector<float>& rows, std::size_t i, std::size_t width) {
  return {rows.begin() + static_cast<std::ptrdiff_t>(i * width), rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * width)};
}

void check_near(const std::vector<float>& got, const std::vector<float>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == Approx(wanted[i]).margin(quantized() ? 0.05 : 1e-3));
  }
}

const std::vector<std::int32_t> kBlocks{3, 1, 4, 15, 9};

}  // namespace

TEST_CASE("a use that the plan does not list is refused") {
  ProgramBuilder b{4};
  build_llama(b, "f32", "f16", 0);
  Session session{subject(), b};
  for (std::uint64_t bit = 1; bit <= MEKIK_USE_HIDDEN; bit *= 2) {
    if ((session.plan().uses & bit) != 0) continue;
    CAPTURE(bit);
    const auto batch = session.batch({{{1, 2}, 0, {0}, -1, 0}});
    batch->raw.uses = bit;
    CHECK(session.submit(batch->raw) == MEKIK_E_UNSUPPORTED);
  }
}

TEST_CASE("blocks out of every window may be gone") {
  ProgramBuilder b{6};
  build_llama(b, "f32", "f16", 5);
  Session session{subject(), b};
  const auto tokens = random_tokens(17, 5);
  const std::vector<std::int32_t> past{tokens.begin(), tokens.end() - 1};
  session.step({{past, 0, kBlocks, -1, 0}});
  const auto truth = session.step({{{tokens.back()}, 16, kBlocks, 0, 0}});
  // Token 16 sees positions 12 to 16: the fourth block and the fifth, of four tokens each.
  CHECK(session.step({{{tokens.back()}, 16, {-1, -1, -1, 15, 9}, 0, 0}}) == truth);
  const auto gone = session.batch({{{tokens.back()}, 16, {3, 1, 4, -1, 9}, 0, 0}});
  CHECK(session.submit(gone->raw) == MEKIK_E_INVALID);
}

TEST_CASE("embeddings stand in for tokens") {
  ProgramBuilder b{6};
  build_llama(b, "f32", "f16", 0);
  Session session{subject(), b};
  if (!lists(session, MEKIK_USE_EMBEDS, "EMBEDS")) return;
  const auto truth = session.step({{{5, 9, 7}, 0, kBlocks, -1, 0}});
  const auto table = b.weights().front().second->decoded();  // of the embeddings, the first weight of the program
  const auto batch = session.batch({{{5, -1, 7}, 0, kBlocks, -1, 0}});
  const std::vector<std::int32_t> from{-1, 0, -1};
  const std::vector<float> embeds{table.begin() + 9 * 64, table.begin() + 10 * 64};
  batch->raw.uses = MEKIK_USE_EMBEDS;
  batch->raw.embed_rows = from.data();
  batch->raw.embeds = embeds.data();
  batch->raw.n_embeds = 1;
  REQUIRE(session.submit(batch->raw) == MEKIK_OK);
  CHECK(batch->logits == truth);
}

TEST_CASE("a state saved after any token is a place to go on from") {
  ProgramBuilder b{6};
  build_hybrid(b);
  std::string why;
  if (!supports_all(subject(), b, &why)) return;
  Session session{subject(), b};
  if (!lists(session, MEKIK_USE_STATE_OUT, "STATE_OUT")) return;
  const auto tokens = random_tokens(6, 5);
  const auto truth = session.step({{tokens, 0, kBlocks, -1, 0}});
  const auto batch = session.batch({{tokens, 0, kBlocks, -1, 0}});
  for (std::int32_t t = 0; t < 6; ++t) batch->state_out[static_cast<std::size_t>(t)] = 1 + t;
  batch->raw.uses = MEKIK_USE_STATE_OUT;
  REQUIRE(session.submit(batch->raw) == MEKIK_OK);
  for (std::int32_t from = 1; from < 6; ++from) {
    CAPTURE(from);
    const auto rest = session.step({{{tokens.begin() + from, tokens.end()}, from, kBlocks, from, 9}});
    CHECK(row(rest, static_cast<std::size_t>(5 - from), session.width()) == row(truth, 5, session.width()));
  }
}

TEST_CASE("a branch of a tree is the sequence without the other branch") {
  ProgramBuilder b{6};
  build_llama(b, "f32", "f32", 0);
  Session session{subject(), b};
  if (!lists(session, MEKIK_USE_TREE, "TREE")) return;
  const std::vector<std::int32_t> past{1, 2, 3, 4, 5};
  const auto start = [&] { session.step({{past, 0, kBlocks, -1, 0}}); };
  start();
  const auto left = session.step({{{6, 7}, 5, kBlocks, 0, 0}});
  start();
  const auto right = session.step({{{6, 8, 9}, 5, kBlocks, 0, 0}});
  start();
  const auto batch = session.batch({{{6, 7, 8, 9}, 5, kBlocks, 0, 0}});
  const std::vector<std::uint64_t> tree{1, 3, 5, 13};
  batch->positions = {5, 6, 6, 7};
  batch->raw.uses = MEKIK_USE_TREE;
  batch->raw.tree = tree.data();
  REQUIRE(session.submit(batch->raw) == MEKIK_OK);
  const std::size_t width = session.width();
  check_near(row(batch->logits, 1, width), row(left, 1, width));
  check_near(row(batch->logits, 2, width), row(right, 1, width));
  check_near(row(batch->logits, 3, width), row(right, 2, width));
}

TEST_CASE("positions with axes turn the pairs that the table says") {
  ProgramBuilder b{6};
  // Pairs 0 and 1 are turned by the first axis, 2 and 3 by the second.
  const auto x = random_rows(b, {2, 8}), y = b.temp({kT, 2, 8});
  b.op(op::rope, {x, b.values({1, 0.5f, 1, 0.5f, 0, 0, 1, 1}, 2, 4), b.input("positions")}, {y}, {8, 0}, {1.0});
  finish(b, y, 16);
  Session session{subject(), b};
  if (!lists(session, MEKIK_USE_AXES, "AXES")) return;
  const auto with = [&](std::vector<std::int32_t> positions) {
    const auto batch = session.batch({{{5, 9}, 0, {}, -1, 0}});
    batch->positions = std::move(positions);
    batch->raw.positions = batch->positions.data();
    batch->raw.n_axes = 2;
    batch->raw.uses = MEKIK_USE_AXES;
    REQUIRE(session.submit(batch->raw) == MEKIK_OK);
    return batch->logits;
  };
  const auto plain = with({0, 0, 0, 0}), first = with({3, 3, 0, 0}), second = with({0, 0, 4, 4});
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const bool of_first = i % 4 < 2;
    CAPTURE(i);
    CHECK((first[i] != plain[i]) == of_first);
    CHECK((second[i] != plain[i]) == !of_first);
  }
}

TEST_CASE("hidden rows and pooled rows come out") {
  const double root = std::sqrt(2.0);  // of two rows a and b
  const std::vector<std::function<double(double, double)>> kinds{[](double a, double b) { return (a + b) / 2; },
                                                                 [](double a, double) { return a; },
                                                                 [](double, double b) { return b; },
                                                                 [](double a, double b) { return std::max(a, b); },
                                                                 [](double a, double b) { return (a + 2 * b) / 3; },
                                                                 [&](double a, double b) { return (a + b) / root; }};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    CAPTURE(kind);
    ProgramBuilder b{6};
    const auto x = random_rows(b, {32}), pooled = b.output("hidden", {kS, 32});
    b.op(op::pool, {x}, {pooled}, {static_cast<std::int64_t>(kind)}, {});
    std::string why;
    if (!supports_all(subject(), b, &why)) return;
    Session session{subject(), b};
    if (!lists(session, MEKIK_USE_HIDDEN, "HIDDEN")) return;
    const auto table = b.weights().front().second->decoded();
    const auto batch = session.batch({{{1, 2}, 0, {}, -1, 0}, {{3}, 0, {}, -1, 0}});
    std::vector<float> hidden(64);
    batch->raw.n_rows = 2;
    batch->raw.uses = MEKIK_USE_HIDDEN;
    batch->raw.hidden = hidden.data();
    batch->raw.logits = nullptr;
    REQUIRE(session.submit(batch->raw) == MEKIK_OK);
    for (std::size_t j = 0; j < 32; ++j) {
      const auto a = static_cast<double>(table[32 + j]), c = static_cast<double>(table[64 + j]);
      CHECK(hidden[j] == Approx(kinds[kind](a, c)).margin(1e-6));
      CHECK(hidden[32 + j] == table[96 + j]);
    }
  }
}

}  // namespace mekik::test
