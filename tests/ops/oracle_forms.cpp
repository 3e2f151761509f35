// Numbers and forms, to the bit.
#include <limits>

#include "oracle.hpp"

namespace mekik::reference {

TEST_CASE("numbers round as numpy rounds them") {
  const Case c{"numbers"};
  const auto x = c.floats("x");
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    CHECK(to_f16(x[i]) == c["f16"][i]);
    CHECK(to_bf16(x[i]) == c["bf16"][i]);
  }
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_f16(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) REQUIRE(((bits & 0x7C00) == 0x7C00 && (bits & 0x3FF) != 0));
    else REQUIRE(to_f16(value) == bits);
  }
  std::size_t at = 0;
  const Case e4m3{"e4m3"};
  for (int code = 0; code < 256; ++code) {
    if ((code & 127) == 127) CHECK(std::isnan(from_e4m3(static_cast<std::uint8_t>(code))));
    else CHECK(from_e4m3(static_cast<std::uint8_t>(code)) == e4m3["y"][at++]);
  }
  CHECK(from_e8m0(127) == 1.0f);
  CHECK(std::isnan(from_e8m0(255)));
  CHECK(from_e8m0(0) == std::ldexp(1.0f, -127));
  CHECK(from_e8m0_half(128) == 1.0f);
  CHECK(from_e8m0_half(255) == std::ldexp(1.0f, 127));
  CHECK(from_ue4m3(0xB8) == from_e4m3(0x38));
  CHECK(from_e5m2(0x3C) == 1.0f);
  CHECK(std::isnan(from_f16(to_f16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(from_bf16(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

namespace {

// A form of 4 rows and 40 columns in groups of 16, its arrays from the case.
struct FormCase {
  explicit FormCase(const std::string& name) : c{name} {
    form.struct_size = sizeof form;
    form.experts = 1, form.n = 4, form.k = 40, form.bits = 4, form.group_k = 16, form.group_n = 1, form.row_step = 1;
    form.kind = MEKIK_FORM_AFFINE;
    for (const double v : c["codes"]) codes.push_back(static_cast<std::uint8_t>(v));
  }
  std::vector<std::uint8_t> packed(const std::string& key, std::uint32_t num) const {
    std::vector<std::uint8_t> out;
    for (const double v : c[key]) {
      std::uint8_t bytes[4];
      if (is_storable(num)) store_num(num, bytes, 0, static_cast<float>(v));
      else bytes[0] = static_cast<std::uint8_t>(static_cast<int>(v));
      out.insert(out.end(), bytes, bytes + num_size(num));
    }
    return out;
  }
  std::vector<float> decode(mekik_form_rows in) {
    in.codes = codes.data();
    REQUIRE(check_form(form).empty());
    REQUIRE(check_codes(form, in, 4).empty());
    std::vector<float> y(160);
    decode_rows(form, in, 0, 0, 0, 4, y.data());
    return y;
  }
  Case c;
  mekik_form form{};
  std::vector<std::uint8_t> codes;
};

}  // namespace

TEST_CASE("forms decode to the bit") {
  {
    FormCase f{"q4_1"};
    f.form.scale_num = f.form.min_num = MEKIK_F16;
    auto scale = f.packed("scale", MEKIK_F16), low = f.packed("min", MEKIK_F16);
    mekik_form_rows r{};
    r.scale = scale.data(), r.min = low.data();
    check_same(f.decode(r), f.c["y"]);
  }
  {
    FormCase f{"q6_k"};
    f.form.scale_num = MEKIK_I8, f.form.super_num = MEKIK_F16, f.form.super_k = 32, f.form.zero = 7;
    auto scale = f.packed("scale", MEKIK_I8), super = f.packed("super", MEKIK_F16);
    mekik_form_rows r{};
    r.scale = scale.data(), r.super = super.data();
    check_same(f.decode(r), f.c["y"]);
  }
  {
    FormCase f{"gptq"};
    f.form.scale_num = MEKIK_F16, f.form.zero_num = MEKIK_U8, f.form.round_num = MEKIK_F16, f.form.group_n = 2;
    f.form.kept_num = MEKIK_F32, f.form.n_kept = 2;
    const auto perm = f.c.ids("perm"), at = f.c.ids("at");
    f.form.k_perm = reinterpret_cast<const std::uint32_t*>(perm.data());
    f.form.kept_k = reinterpret_cast<const std::uint32_t*>(at.data());
    auto scale = f.packed("scale", MEKIK_F16), zero = f.packed("zero", MEKIK_U8), kept = f.packed("kept", MEKIK_F32);
    mekik_form_rows r{};
    r.scale = scale.data(), r.zero = zero.data(), r.kept = kept.data();
    check_same(f.decode(r), f.c["y"]);
  }
  for (const std::string name : {"nvfp4", "mxfp4"}) {
    FormCase f{name};
    const auto table = f.c.floats("table");
    f.form.kind = MEKIK_FORM_CODEBOOK, f.form.table = table.data(), f.form.n_table = 16;
    f.form.scale_num = name == "nvfp4" ? MEKIK_UE4M3 : MEKIK_E8M0;
    std::vector<float> tensor_scale;
    if (name == "nvfp4") tensor_scale = f.c.floats("tensor"), f.form.tensor_scale = tensor_scale.data();
    auto scale = f.packed("scale", MEKIK_U8);
    mekik_form_rows r{};
    r.scale = scale.data();
    check_same(f.decode(r), f.c["y"]);
    if (name == "nvfp4") continue;
    f.form.scale_num = MEKIK_E8M0_HALF;
    check_same(f.decode(r), f.c["half"]);
  }
}

TEST_CASE("a wrong form is named") {
  FormCase f{"q4_1"};
  f.form.scale_num = MEKIK_F16;
  CHECK(check_form(f.form).empty());
  const auto wrong = [&](auto&& spoil) {
    mekik_form bad = f.form;
    spoil(bad);
    CHECK_FALSE(check_form(bad).empty());
  };
  wrong([](mekik_form& x) { x.kind = 9; });
  wrong([](mekik_form& x) { x.bits = 9; });
  wrong([](mekik_form& x) { x.group_k = 0; });
  wrong([](mekik_form& x) { x.super_k = 24; });
  wrong([](mekik_form& x) { x.scale_num = 0; });
  wrong([](mekik_form& x) { x.round_num = MEKIK_U8; });
  wrong([](mekik_form& x) { x.kind = MEKIK_FORM_CODEBOOK; });
  wrong([](mekik_form& x) { x.n = std::uint64_t{1} << 60; });
  std::vector<std::uint32_t> perm(40, 3);
  wrong([&](mekik_form& x) { x.k_perm = perm.data(); });
  f.codes[17] = 16;
  mekik_form_rows r{};
  r.codes = f.codes.data();
  CHECK(check_codes(f.form, r, 4) == "code 16 where codes end at 15");
}

}  // namespace mekik::reference
