"""The formats of make_checkpoints.py: for each, how a weight is stored, and what its own tool makes of that."""
import json

import torch

SKIPPED = ("embed", "norm", "router", "mlp.gate.weight", "sinks", "bias")


def is_matrix(name, value):
    return value.dim() >= 2 and not any(word in name for word in SKIPPED)


# ---- packing -------------------------------------------------------------------------------------------------------------------------------------
def bit_stream(codes, bits):
    """[count][lines] codes as a stream of bits down each line: I32 [count * bits / 32, rounded up][lines]."""
    count, lines = codes.shape
    words = torch.zeros((count * bits + 31) // 32, lines, dtype=torch.int64)
    for i in range(count):
        word, shift = divmod(i * bits, 32)
        value = codes[i].to(torch.int64) << shift
        words[word] |= value & 0xFFFFFFFF
        if shift + bits > 32:
            words[word + 1] |= value >> 32
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)


def affine(weight, group_of, bits, symmetric, dtype, least=0):
    """Rounds to nearest, zero points from `least` on. Codes [n][k], scales [n][groups], zero points [n][groups]; the scale of input j is that of group group_of[j]."""
    groups, top = int(group_of.max()) + 1, 2**bits - 1
    scales, zeros = torch.zeros(weight.shape[0], groups), torch.zeros(weight.shape[0], groups, dtype=torch.int64)
    codes = torch.zeros(weight.shape, dtype=torch.int64)
    for g in range(groups):
        columns = group_of == g
        part = weight[:, columns]
        if symmetric:
            scale = (part.abs().amax(1) * 2 / top).clamp(min=1e-6)
            zero = torch.full_like(scale, 2 ** (bits - 1))
        else:
            low, high = part.amin(1).clamp(max=0), part.amax(1).clamp(min=0)
            scale = ((high - low) / top).clamp(min=1e-6)
            zero = torch.round(-low / scale)
        scales[:, g] = scale.to(dtype).float()
        zeros[:, g] = zero.to(torch.int64).clamp(least, top)
        codes[:, columns] = (torch.round(part / scales[:, g : g + 1]) + zeros[:, g : g + 1]).clamp(0, top).to(torch.int64)
    return codes, scales, zeros


# ---- GPTQ: AutoGPTQ's torch kernel: scales[g_idx] * (weight - zeros), the product in the scales' type -----------------------------------------------
def gptq(bits=4, group=32, symmetric=True, act_order=False, second=False, dtype=torch.float16, odd_groups=False, with_index=True, per_module=None,
         high_zeros=False):
    def write(name, weight):
        b, g = per_module(name) if per_module else (bits, group)
        if b is None:
            return None
        weight = weight.float()
        n, k = weight.shape
        size = k if g == -1 else g
        index = torch.arange(k) // size
        if act_order:
            index = index[torch.randperm(k, generator=torch.Generator().manual_seed(k))]
        if odd_groups:
            index[0] = (index[0] + 1) % (int(index.max()) + 1)
        codes, scales, zeros = affine(weight, index, b, symmetric, dtype, 0 if second else 1)  # the first version cannot say 0
        if high_zeros:  # the first version of the format can say a zero point above the largest code
            zeros[:, 0] = 2**b
        scales = scales.to(dtype)
        value = (codes - zeros[:, index]).to(dtype) * scales[:, index]
        base = name.removesuffix("weight")
        parts = {base + "qweight": bit_stream(codes.T, b), base + "qzeros": pack_zeros(zeros - (0 if second else 1), b), base + "scales": scales.T.contiguous()}
        if with_index:
            parts[base + "g_idx"] = index.to(torch.int32)
        return parts, value
    return write


def pack_zeros(zeros, bits):
    """[n][groups] to I32 [groups][n * bits / 32]."""
    return bit_stream(zeros, bits).T.contiguous()


def gptq_config(bits=4, group=32, symmetric=True, act_order=False, **more):
    return {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": symmetric, "desc_act": act_order, "true_sequential": True,
            "damp_percent": 0.01, "checkpoint_format": "gptq", **more}


# ---- AWQ: AutoAWQ's unpacking: (q - z) * scale in the scales' type ------------------------------------------------------------------------------------
ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def eight_a_word(codes, order):
    """[lines][8 * w] to I32 [lines][w]."""
    words = torch.zeros(codes.shape[0], codes.shape[1] // 8, dtype=torch.int64)
    for place, column in enumerate(order):
        words |= codes[:, column::8].to(torch.int64) << (4 * place)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)


def awq(group=32, gemv=False, dtype=torch.float16):
    def write(name, weight):
        n, k = weight.shape
        index = torch.arange(k) // (k if group == -1 else group)
        codes, scales, zeros = affine(weight.float(), index, 4, False, dtype)
        value = (codes - zeros[:, index]).to(dtype) * scales.to(dtype)[:, index]
        base = name.removesuffix("weight")
        if not gemv:
            return {base + "qweight": eight_a_word(codes.T, ORDER), base + "qzeros": eight_a_word(zeros.T, ORDER), base + "scales": scales.T.to(dtype)}, value
        groups, multiple = zeros.shape[1], 4 if group == 32 else 2 if group == 64 else 1
        width = -(-(-(-groups // 8)) // multiple) * multiple
        wide = torch.nn.functional.pad(zeros, (0, width * 8 - groups))
        return {base + "qweight": eight_a_word(codes, range(8)), base + "qzeros": eight_a_word(wide, range(8)),
                base + "scales": torch.nn.functional.pad(scales, (0, width * 8 - groups)).to(dtype)}, value
    return write


def awq_config(version="gemm", group=32, **more):
    return {"quant_method": "awq", "bits": 4, "group_size": group, "version": version, "zero_point": True, **more}


# ---- FP8 --------------------------------------------------------------------------------------------------------------------------------------------
def blocks_of(weight, block):
    n, k = weight.shape
    down, across = -(-n // block[0]), -(-k // block[1])
    return torch.nn.functional.pad(weight, (0, across * block[1] - k, 0, down * block[0] - n)).reshape(down, block[0], across, block[1])


def fp8(block=None, dtype=torch.bfloat16, kind=torch.float8_e4m3fn, suffix="weight_scale_inv", powers=False, extra=None, scale_dtype=torch.float32):
    """weight * scale in F32, rounded to the model's type: transformers' and DeepSeek's own unpacking. block: None the tensor, "row", or two sizes."""
    def write(name, weight):
        weight, (n, k) = weight.float(), weight.shape
        size = (n, k) if block is None else (1, k) if block == "row" else block
        top = torch.finfo(kind).max
        scale = (blocks_of(weight, size).abs().amax((1, 3)) / top).clamp(min=1e-8).to(scale_dtype).float()
        if powers:
            scale = torch.exp2(torch.ceil(torch.log2(scale)))
        wide = scale.repeat_interleave(size[0], 0)[:n].repeat_interleave(size[1], 1)[:, :k]
        stored = (weight / wide).clamp(-top, top).to(kind)
        value = (stored.float() * wide).to(dtype)
        if powers:
            kept = (torch.log2(scale) + 127).to(torch.uint8)
        else:
            kept = (scale.reshape(()) if block is None else scale).to(scale_dtype)
        base = name.removesuffix("weight")
        parts = {name: stored, base + suffix: kept}
        for other, number in (extra or {}).items():
            parts[base + other] = torch.tensor(number)
        return parts, value
    return write


FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def to_fp4(values):
    return (values[..., None] - FP4).abs().argmin(-1)


def modelopt_nvfp4(dtype=torch.bfloat16):
    """NVFP4QTensor.dequantize: (scale * scale_2) in F32, times the code, rounded."""
    def write(name, weight):
        weight, (n, k) = weight.float(), weight.shape
        both = (weight.abs().max() / (6 * 448)).reshape(())
        scale = (blocks_of(weight, (1, 16)).abs().amax((1, 3)) / 6 / both).to(torch.float8_e4m3fn)
        wide = (scale.float() * both).repeat_interleave(16, 1)
        codes = to_fp4(weight / wide.clamp(min=1e-12))
        base = name.removesuffix("weight")
        return {name: (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8), base + "weight_scale": scale, base + "weight_scale_2": both,
                base + "input_scale": torch.tensor(0.01)}, (FP4[codes] * wide).to(dtype)
    return write


# ---- MXFP4 of gpt-oss -------------------------------------------------------------------------------------------------------------------------------
def mxfp4(name, weight):
    if "experts." not in name or name.endswith("bias"):
        return None
    rows = weight.float().transpose(1, 2)  # a model has [experts][in][out], files have [experts][out][in]
    e, n, k = rows.shape
    blocks = rows.reshape(e, n, k // 32, 32)
    exponent = torch.floor(torch.log2(blocks.abs().amax(-1).clamp(min=1e-20))) - 2
    codes = to_fp4(blocks / torch.exp2(exponent)[..., None])
    value = (FP4[codes] * torch.exp2(exponent)[..., None]).reshape(e, n, k)
    parts = {name + "_blocks": (codes[..., ::2] | codes[..., 1::2] << 4).to(torch.uint8), name + "_scales": (exponent + 127).to(torch.uint8)}
    return parts, value, name, value.transpose(1, 2).contiguous()


# ---- bitsandbytes: its own functions ------------------------------------------------------------------------------------------------------------------
def bnb4(kind="nf4", block=64, nested=True, dtype=torch.bfloat16):
    import bitsandbytes.functional as tool
    from bitsandbytes.backends.default import ops

    def write(name, weight):
        packed, state = tool.quantize_4bit(weight.to(dtype), blocksize=block, compress_statistics=nested, quant_type=kind)
        parts = {f"{name}.{key}": value for key, value in state.as_dict(packed=True).items()}
        absmax = state.absmax
        if nested:
            absmax = tool.dequantize_blockwise(state.absmax, state.state2) + state.offset
        # Not the CPU's vector kernel: it looks at the wrong blocks where they cross rows.
        value = ops._dequantize_4bit_compute(packed.reshape(-1), absmax, state.code, block, weight.shape, dtype)
        if weight.shape[1] % block == 0:
            assert torch.equal(value, tool.dequantize_4bit(packed, state))
        return {name: packed, **parts}, value
    return write


def bnb8(name, weight):
    import bitsandbytes.functional as tool

    codes, scales, _ = tool.int8_vectorwise_quant(weight.to(torch.float16))
    base = name.removesuffix("weight")
    return {name: codes, base + "SCB": scales, base + "weight_format": torch.tensor(0, dtype=torch.uint8)}, tool.int8_vectorwise_dequant(codes, scales)


def bnb_config(four, **more):
    return {"quant_method": "bitsandbytes", "load_in_4bit": four, "load_in_8bit": not four, "llm_int8_threshold": 6.0, "llm_int8_skip_modules": None,
            "llm_int8_has_fp16_weight": False, "bnb_4bit_compute_dtype": "bfloat16", **more}


# ---- compressed-tensors: its own compressors ------------------------------------------------------------------------------------------------------------
def compressed(format_name, dtype=torch.bfloat16, actorder=False, activations=None, **weights):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme, QuantizationStrategy
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

    args = QuantizationArgs(**weights)
    inputs = QuantizationArgs(**activations) if activations else None
    scheme = QuantizationScheme(targets=["Linear"], weights=args, input_activations=inputs)
    tool = BaseCompressor.get_value_from_registry(format_name)

    def write(name, weight):
        weight, (n, k) = weight.to(dtype), weight.shape
        strategy = args.strategy
        if strategy == QuantizationStrategy.BLOCK:
            cut = blocks_of(weight.float(), args.block_structure)
            low, high = cut.amin((1, 3)), cut.amax((1, 3))
        elif strategy in (QuantizationStrategy.GROUP, QuantizationStrategy.TENSOR_GROUP):
            cut = weight.float().reshape(n, k // args.group_size, args.group_size)
            low, high = cut.amin(2), cut.amax(2)
        elif strategy == QuantizationStrategy.CHANNEL:
            low, high = weight.float().amin(1, keepdim=True), weight.float().amax(1, keepdim=True)
        else:
            low, high = weight.float().min().reshape(1), weight.float().max().reshape(1)
        both = generate_gparam(weight.float().min(), weight.float().max()) if strategy == QuantizationStrategy.TENSOR_GROUP else None
        scale, zero = calculate_qparams(low, high, args, global_scale=both)
        state = {"weight": weight, "weight_scale": scale if both is not None else scale.to(dtype), "weight_zero_point": zero}
        if both is not None:
            state["weight_global_scale"] = both
        packed = tool.compress(dict(state), scheme)
        value = tool.decompress(dict(packed), scheme)["weight"]
        base = name.removesuffix("weight")
        return {base + key: part for key, part in packed.items()}, value
    write.scheme, write.format = scheme, format_name
    return write


def compressed_config(write, **more):
    group = json.loads(write.scheme.model_dump_json())
    return {"quant_method": "compressed-tensors", "format": write.format, "quantization_status": "compressed", "global_compression_ratio": None,
            "config_groups": {"group_0": group}, "ignore": ["lm_head"], "kv_cache_scheme": None, **more}


def variants():
    out = {}

    def gptq_variant(name, options, config=None, **more):
        shared = {k: v for k, v in options.items() if k in ("bits", "group", "symmetric", "act_order")}
        out[name] = {"write": gptq(**options), "config": gptq_config(**shared, **(config or {})), "dtype": options.get("dtype", torch.float16), **more}

    gptq_variant("gptq-4-32", {})
    gptq_variant("gptq-4-act-order", {"act_order": True, "symmetric": False, "group": 16})
    gptq_variant("gptq-3", {"bits": 3, "group": 32, "symmetric": False})
    gptq_variant("gptq-2-high-zeros", {"bits": 2, "group": 16, "symmetric": False, "high_zeros": True})
    gptq_variant("gptq-8-rows", {"bits": 8, "group": -1, "dtype": torch.bfloat16})
    gptq_variant("gptq-v2-uneven", {"group": 64, "second": True, "symmetric": False}, {"checkpoint_format": "gptq_v2"})
    gptq_variant("gptq-v2-called-v1", {"second": True}, notes=["another version"])
    gptq_variant("gptq-odd-groups", {"odd_groups": True, "symmetric": False}, decoded=True)

    def by_module(name):
        return (None, None) if "k_proj" in name else (8, 16) if "down_proj" in name else (4, 32)

    rules = {"-:.*k_proj": {}, r"+:.*\.mlp\.down_.*": {"bits": 8, "group_size": 16}}
    gptq_variant("gptq-dynamic", {"per_module": by_module}, {"dynamic": rules})
    gptq_variant("gptq-mixture", {"group": 32}, kind="mixture")
    out["awq-gemm"] = {"write": awq(), "config": awq_config()}
    out["awq-gemm-rows"] = {"write": awq(group=-1, dtype=torch.bfloat16), "config": awq_config(group=-1), "dtype": torch.bfloat16}
    out["awq-gemv"] = {"write": awq(gemv=True), "config": awq_config("gemv")}
    fine = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
    out["fp8-128"] = {"write": fp8((128, 128)), "config": fine, "dtype": torch.bfloat16, "notes": ["activations"]}
    out["fp8-blocks"] = {"write": fp8((48, 40)), "config": {**fine, "weight_block_size": [48, 40]}, "dtype": torch.bfloat16}
    out["fp8-mixture"] = {"write": fp8((32, 32)), "config": {**fine, "weight_block_size": [32, 32]}, "dtype": torch.bfloat16, "kind": "mixture"}
    out["fp8-static"] = {"write": fp8(None, extra={"activation_scale": 0.02}), "dtype": torch.bfloat16,
                         "config": {"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None}}
    out["fp8-e5m2"] = {"write": fp8(None, torch.float32, torch.float8_e5m2, "weight_scale", extra={"input_scale": 0.02}), "dtype": torch.float32,
                       "config": {"quant_method": "fp8", "activation_scheme": "static"}}
    out["fbgemm-fp8"] = {"write": fp8("row", suffix="weight_scale"), "dtype": torch.bfloat16,
                         "config": {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": []}}
    out["mxfp8"] = {"write": fp8((1, 32), powers=True), "config": {"quant_method": "mxfp8", "weight_block_size": [1, 32]}, "dtype": torch.bfloat16}
    told = {"producer": {"name": "modelopt", "version": "0.40"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": 16}}
    out["modelopt-nvfp4"] = {"write": modelopt_nvfp4(), "files": {"hf_quant_config.json": told}, "dtype": torch.bfloat16, "notes": ["input_scale"]}
    out["modelopt-fp8"] = {"write": fp8(None, suffix="weight_scale", extra={"input_scale": 0.02}), "dtype": torch.bfloat16,
                           "config": {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}}
    out["mxfp4-gpt-oss"] = {"write": mxfp4, "kind": "gpt_oss", "dtype": torch.bfloat16,
                            "config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.embed_tokens", "lm_head"]}}
    out["bnb-nf4"] = {"write": bnb4(), "config": bnb_config(True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True), "dtype": torch.bfloat16, "decoded": True}
    out["bnb-nf4-32"] = {"write": bnb4("nf4", 32, True, torch.float16), "config": bnb_config(True, bnb_4bit_quant_type="nf4")}
    out["bnb-fp4"] = {"write": bnb4("fp4", 32, False), "config": bnb_config(True, bnb_4bit_quant_type="fp4"), "dtype": torch.bfloat16}
    out["bnb-fp4-128"] = {"write": bnb4("fp4", 128, True), "config": bnb_config(True, bnb_4bit_quant_type="fp4"), "dtype": torch.bfloat16, "decoded": True}
    out["bnb-int8"] = {"write": bnb8, "config": bnb_config(False)}

    def compressed_variant(name, write, **more):
        config = {k: more.pop(k) for k in list(more) if k in ("ignore", "format")}
        out[name] = {"write": write, "config": compressed_config(write, **config), "dtype": torch.bfloat16, **more}

    compressed_variant("ct-int4-group", compressed("pack-quantized", num_bits=4, type="int", symmetric=True, strategy="group", group_size=32))
    compressed_variant("ct-int4-zeros", compressed("pack-quantized", num_bits=4, type="int", symmetric=False, strategy="group", group_size=16))
    compressed_variant("ct-int3-channel", compressed("pack-quantized", num_bits=3, type="int", symmetric=False, strategy="channel"))
    compressed_variant("ct-int8-packed", compressed("pack-quantized", num_bits=8, type="int", symmetric=True, strategy="channel"))
    inputs = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True}
    compressed_variant("ct-w8a8", compressed("int-quantized", activations=inputs, num_bits=8, type="int", symmetric=True, strategy="channel"),
                       notes=["input_activations"])
    compressed_variant("ct-w8-zeros", compressed("naive-quantized", num_bits=8, type="int", symmetric=False, strategy="tensor"))
    floats = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}
    compressed_variant("ct-fp8", compressed("float-quantized", activations=floats, num_bits=8, type="float", strategy="tensor"))
    compressed_variant("ct-fp8-channel", compressed("float-quantized", activations=floats, num_bits=8, type="float", strategy="channel"))
    compressed_variant("ct-fp8-block", compressed("float-quantized", num_bits=8, type="float", strategy="block", block_structure=[128, 128]))
    compressed_variant("ct-nvfp4", compressed("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16))
    compressed_variant("ct-mxfp4", compressed("mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32))
    compressed_variant("ct-mxfp6", compressed("mxfp6-pack-quantized", num_bits=6, type="float", strategy="group", group_size=32))
    return out
