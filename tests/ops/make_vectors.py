#!/usr/bin/env python3
"""Makes vectors.txt: inputs and expectations of the reference operations, computed here in numpy float64.

    python3 tests/ops/make_vectors.py > tests/ops/vectors.txt

A line "case NAME", then lines "key value...". Inputs are float32 numbers; expectations are float64.
"""
import math
import numpy as np

rng = np.random.default_rng(2024)
f32 = lambda *shape: rng.standard_normal(shape).astype(np.float32)


def case(name, **arrays):
    print("case", name)
    for key, value in arrays.items():
        flat = np.asarray(value).reshape(-1)
        print(key, *(format(float(v), ".9g" if np.asarray(value).dtype == np.float32 else ".17g") for v in flat))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def activations():
    x = np.concatenate([np.array([0, -0.5, 1, -1, 3, -3, 20, -20, 90, -90], np.float32), f32(6)])
    d = x.astype(np.float64)
    sig = 1 / (1 + np.exp(-d))
    erf = np.array([math.erf(v / math.sqrt(2)) for v in d])
    tanh = np.tanh(math.sqrt(2 / math.pi) * (d + 0.044715 * d**3))
    case("act", x=x, y0=d, y1=d * sig, y2=d * 0.5 * (1 + erf), y3=0.5 * d * (1 + tanh), y4=d / (1 + np.exp(-1.702 * d)),
         y5=np.maximum(d, 0), y6=np.maximum(d, 0) ** 2, y7=sig, y8=np.tanh(d), y9=np.logaddexp(0, d))
    g, u, limit, alpha = f32(12) * 3, f32(12) * 3, 1.5, 1.702
    gc, uc = np.minimum(g.astype(np.float64), limit), np.clip(u.astype(np.float64), -limit, limit)
    case("swiglu_clamped", g=g, u=u, limit=limit, alpha=alpha, y=gc / (1 + np.exp(-alpha * gc)) * (uc + 1))


def norms():
    x, w, b = f32(3, 2, 8), f32(8), f32(8)
    d = x.astype(np.float64)
    case("norms", x=x, w=w, b=b, rms=d / np.sqrt((d**2).mean(-1, keepdims=True) + 1e-5) * w,
         layer=(d - d.mean(-1, keepdims=True)) / np.sqrt(d.var(-1, keepdims=True) + 1e-5) * w + b,
         l2=d / np.sqrt((d**2).sum(-1, keepdims=True) + 1e-6), softmax=softmax(d))


def linears():
    x, w, b = f32(3, 21), f32(11, 21), f32(11)
    case("linear", x=x, w=w, b=b, y=x.astype(np.float64) @ w.T.astype(np.float64) + b)


def rotations():
    x, positions = f32(4, 2, 10), np.array([[0, 1, 7, 4000], [5, 0, 2, 9]])
    table = np.stack([10000.0 ** (-np.arange(4) / 4), [0, 1, 1, 0]]).astype(np.float32)
    for name, axes in (("rope", 1), ("rope_axes", 2)):
        out = {}
        for pairs in (0, 1):
            y = x.astype(np.float64).copy()
            for t in range(4):
                for i in range(4):
                    axis = int(table[1, i]) if axes == 2 else 0
                    z = np.exp(1j * float(positions[axis, t]) * float(table[0, i])) * 1.25
                    a, b = (i, i + 4) if pairs == 0 else (2 * i, 2 * i + 1)
                    turned = (x[t, :, a].astype(np.float64) + 1j * x[t, :, b]) * z
                    y[t, :, a], y[t, :, b] = turned.real, turned.imag
            out[f"y{pairs}"] = y
        case(name, x=x, positions=positions[:axes].astype(np.float32), table=table, **out)


def attend(q, k, v, past, window=0, cap=0.0, sinks=None, slopes=None, causal=True, scale=0.3):
    t, heads, _ = q.shape
    keys, groups, _ = k.shape
    out = np.zeros((t, heads, v.shape[2]))
    for i in range(t):
        for h in range(heads):
            g = h // (heads // groups)
            s = scale * (k[:, g].astype(np.float64) @ q[i, h].astype(np.float64))
            if cap:
                s = cap * np.tanh(s / cap)
            distance = np.arange(keys) - (past + i)
            if slopes is not None:
                s = s + slopes[h] * distance
            s = np.where((distance > 0) & causal | (window > 0) & (-distance >= window), -np.inf, s)
            if sinks is not None:
                s = np.append(s, sinks[h])
            out[i, h] = softmax(s)[:keys] @ v[:, g].astype(np.float64)
    return out


def attentions():
    q, k, v, sinks, slopes = f32(3, 4, 6), f32(8, 2, 6), f32(8, 2, 5), f32(4), np.abs(f32(4))
    k16, v16 = k.astype(np.float16).astype(np.float32), v.astype(np.float16).astype(np.float32)
    y = dict(plain=attend(q, k, v, 5), f16=attend(q, k16, v16, 5), window=attend(q, k, v, 5, window=3), cap=attend(q, k, v, 5, cap=1.5),
             sinks_y=attend(q, k, v, 5, sinks=sinks), slopes_y=attend(q, k, v, 5, slopes=slopes, window=4), two_way=attend(q, k, v, 5, causal=False))
    case("attention", q=q, k=k, v=v, sinks=sinks, slopes=slopes, **y)
    segments = np.array([0, 0, 1, 1, 1, 0])
    q, k, v = f32(6, 2, 4), f32(6, 1, 4), f32(6, 1, 3)
    full = np.zeros((6, 2, 3))
    for i in range(6):
        seen = segments == segments[i]
        full[i] = attend(q[i:i + 1], k[seen], v[seen], 0, causal=False, scale=0.5)[0]
    case("attention_full", q=q, k=k, v=v, segments=segments.astype(np.float32), y=full)


def latent():
    heads, n, r, rank, width, keys = 2, 5, 4, 6, 3, 7
    qn, qr, c, kr = f32(2, heads, n), f32(2, heads, r), f32(keys, rank), f32(keys, r)
    kb, vb = f32(heads, rank, n), f32(heads, width, rank)
    # Expanded: keys and values of every head are made first, the opposite of what the reference does.
    k = np.concatenate([np.einsum("sc,hcn->shn", c, kb, dtype=np.float64), np.repeat(kr[:, None], heads, 1)], -1)
    v = np.einsum("sc,hvc->shv", c, vb, dtype=np.float64)
    case("mla", q_nope=qn, q_rot=qr, c=c, k_rot=kr, k_b=kb, v_b=vb, y=attend(np.concatenate([qn, qr], -1), k, v, keys - 2, scale=0.2))


def route(logits, bias, top, score, groups, top_groups, group_score, normalize, scale):
    ids, weights = [], []
    for row in logits.astype(np.float64):
        s = softmax(row) if score == 0 else 1 / (1 + np.exp(-row)) if score == 1 else row
        choice = s + bias
        if groups > 1:
            parts = np.sort(choice.reshape(groups, -1), -1)
            value = parts[:, -2:].sum(-1) if group_score == 0 else parts[:, -1]
            best = sorted(range(groups), key=lambda g: (-value[g], g))[:top_groups]
            choice = np.where(np.isin(np.arange(len(row)) // (len(row) // groups), best), choice, -np.inf)
        chosen = sorted(range(len(row)), key=lambda e: (-choice[e], e))[:top]
        w = s[chosen]
        w = softmax(w) if score == 2 else w
        w = w / w.sum() if normalize else w
        ids.append(chosen)
        weights.append(w * scale)
    return np.array(ids, np.float64), np.array(weights)


def experts():
    logits, bias = f32(5, 8), (0.2 * f32(8)).astype(np.float32)
    for i, options in enumerate([(2, 0, 1, 1, 0, 0, 1.0), (3, 1, 4, 2, 0, 1, 2.5), (3, 2, 1, 1, 0, 0, 1.0), (2, 0, 4, 1, 1, 1, 1.0)]):
        ids, weights = route(logits, bias if options[1] == 1 else 0 * bias, *options)
        case(f"moe_route{i}", logits=logits, bias=bias, options=np.array(options, np.float64), ids=ids, weights=weights)
    x, w, b, ids, mix = f32(3, 6), f32(4, 5, 6), f32(4, 5), np.array([[0, 3], [2, 2], [1, 0]]), f32(3, 2)
    y = np.stack([[w[e].astype(np.float64) @ x[t] + b[e] for e in ids[t]] for t in range(3)])
    case("moe_linear", x=x, w=w, b=b, ids=ids.astype(np.float32), mix=mix, y=y, combined=np.einsum("tkn,tk->tn", y, mix.astype(np.float64)))


def recurrences():
    x, w, b, past = f32(6, 3), f32(3, 4), f32(3), f32(3, 3)
    rows = np.concatenate([past.T, x]).astype(np.float64)
    y = np.stack([(rows[t:t + 4] * w.T).sum(0) + b for t in range(6)])
    case("conv", x=x, w=w, b=b, past=past, y=y / (1 + np.exp(-y)), after=rows[-3:].T)
    h, p, g, n, t = 4, 3, 2, 5, 4
    x, dt, bb, cc, d, start = f32(t, h, p), np.abs(f32(t, h)), f32(t, g, n), f32(t, g, n), f32(h), f32(h, p, n)
    for name, a in (("ssm", -np.abs(f32(h, 1))), ("ssm_columns", -np.abs(f32(h, n)))):
        s, out = start.astype(np.float64), []
        for i in range(t):
            bi, ci = np.repeat(bb[i], h // g, 0)[:, None], np.repeat(cc[i], h // g, 0)[:, None]
            s = s * np.exp(dt[i][:, None, None] * a[:, None].astype(np.float64)) + dt[i][:, None, None] * bi * x[i][..., None].astype(np.float64)
            out.append((s * ci).sum(-1) + x[i] * d[:, None])
        case(name, x=x, dt=dt, a=a, b=bb, c=cc, d=d, start=start, y=np.stack(out), after=s)
    hk, hv, dk, dv = 2, 4, 3, 2
    q, k, v, decay, beta, start = f32(t, hk, dk), f32(t, hk, dk), f32(t, hv, dv), -np.abs(f32(t, hv)), np.abs(f32(t, hv)) / 4, f32(hv, dk, dv)
    out = {}
    for tiled in (0, 1):
        s, rows = start.astype(np.float64), []
        spread = (lambda z: np.tile(z, (hv // hk, 1))) if tiled else (lambda z: np.repeat(z, hv // hk, 0))
        for i in range(t):
            s = s * np.exp(decay[i].astype(np.float64))[:, None, None]
            ki = spread(k[i]).astype(np.float64)
            delta = (v[i] - np.einsum("hkv,hk->hv", s, ki)) * beta[i][:, None]
            s = s + np.einsum("hk,hv->hkv", ki, delta)
            rows.append(np.einsum("hkv,hk->hv", s, spread(q[i]).astype(np.float64)) * 0.5)
        out[f"y{tiled}"], out[f"after{tiled}"] = np.stack(rows), s
    case("gated_delta", q=q, k=k, v=v, decay=decay, beta=beta, start=start, **out)


def numbers():
    x = np.concatenate([f32(30), f32(10) * 1e-6, f32(10) * 3e-8, f32(6) * 7e4, np.array([65519.99, 65520, 2**-24, 2**-25, 3 * 2**-26, 0, -0.0], np.float32)]).astype(np.float32)
    with np.errstate(over="ignore"):
        half = x.astype(np.float16)
    bits = x.view(np.uint32)
    brain = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint32)
    case("numbers", x=x, f16=half.view(np.uint16).astype(np.float64), bf16=brain.astype(np.float64))
    e4m3 = [(-1) ** (c >> 7) * ((c & 7) / 8 * 2**-6 if not (c >> 3) & 15 else (1 + (c & 7) / 8) * 2.0 ** (((c >> 3) & 15) - 7)) for c in range(256) if c & 127 != 127]
    case("e4m3", y=np.array(e4m3))


def forms():
    """Each step rounded to float32, as mekik/plugin.h writes the arithmetic."""
    one = np.float32
    codes = rng.integers(0, 16, (4, 40))
    scale, low = (np.abs(f32(4, 3)).astype(np.float16)), np.abs(f32(4, 3)).astype(np.float16)
    spread = lambda a, each, k=40: np.repeat(a, each, 1)[:, :k]
    case("q4_1", codes=codes.astype(np.float64), scale=scale.astype(np.float32), min=low.astype(np.float32),
         y=spread(scale, 16).astype(one) * codes.astype(one) - spread(low, 16).astype(one))
    small, big = rng.integers(-32, 32, (4, 3)), np.abs(f32(4, 2)).astype(np.float16)
    s = np.repeat(big, 2, 1)[:, :3].astype(one) * small.astype(one)
    case("q6_k", codes=codes.astype(np.float64), scale=small.astype(np.float64), super=big.astype(np.float32),
         y=spread(s, 16) * (codes - 7).astype(one))
    zero, perm = rng.integers(0, 17, (2, 3)), rng.permutation(40)
    scale = np.abs(f32(2, 3)).astype(np.float16)
    rows = lambda a: np.repeat(spread(a, 16), 2, 0)  # groups of two rows
    w = (rows(scale).astype(one) * (codes - rows(zero)).astype(one)).astype(np.float16).astype(one)
    y = np.zeros_like(w)
    y[:, perm] = w
    kept, at = f32(4, 2), np.array([3, 29])
    y[:, at] = kept
    case("gptq", codes=codes.astype(np.float64), scale=scale.astype(np.float32), zero=zero.astype(np.float64), perm=perm.astype(np.float64),
         kept=kept, at=at.astype(np.float64), y=y)
    fp4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], one)
    e4 = rng.integers(1, 126, (4, 3))
    value = np.where(e4 >> 3, (1 + (e4 & 7) / 8) * 2.0 ** ((e4 >> 3) - 7), (e4 & 7) / 8 * 2.0**-6).astype(one)
    case("nvfp4", codes=codes.astype(np.float64), scale=e4.astype(np.float64), table=fp4, tensor=one(0.3),
         y=(spread(value, 16) * fp4[codes]) * one(0.3))
    e8 = rng.integers(100, 140, (4, 3))
    case("mxfp4", codes=codes.astype(np.float64), scale=e8.astype(np.float64), table=fp4, y=spread(np.ldexp(one(1), e8 - 127), 16) * fp4[codes],
         half=spread(np.ldexp(one(1), e8 - 128), 16) * fp4[codes])


def scales_and_means():
    x, positions = f32(4, 2, 3), np.array([0, 5, 7, 900])
    factor = lambda shift, every, by: (1 + by * np.log1p(np.floor((positions + shift) / every)))[:, None, None]
    case("position_scale", x=x, positions=positions.astype(np.float32), mean=x.astype(np.float64).mean(-1),
         plain=x.astype(np.float64) * factor(0, 4.0, 0.1), shifted=x.astype(np.float64) * factor(1, 8.0, 0.25))
    roots = np.abs(f32(8))
    case("roots", x=roots, sqrt=np.sqrt(roots.astype(np.float64)), exp=np.exp(roots.astype(np.float64)))


def near_attentions():
    q, k, v, sinks, slopes = f32(3, 4, 6), f32(8, 2, 6), f32(8, 2, 5), f32(4), np.abs(f32(4))
    out = np.concatenate([attend(q[i:i + 1], k[(5 + i) // 3 * 3:6 + i], v[(5 + i) // 3 * 3:6 + i], (5 + i) % 3, sinks=sinks) for i in range(3)])
    case("attention_chunk", q=q, k=k, v=v, sinks=sinks, y=out)  # chunks of 3
    segments, at = np.array([0, 0, 1, 1, 1, 1]), np.arange(6)
    q, k, v = f32(6, 4, 4), f32(6, 2, 4), f32(6, 2, 3)
    y = np.zeros((6, 4, 3))
    for i in range(6):
        seen = (segments == segments[i]) & (np.abs(at - i) < 3)
        for h in range(4):
            s = 0.5 * k[seen][:, h // 2].astype(np.float64) @ q[i, h].astype(np.float64)
            s = 2 * np.tanh(s / 2) - slopes[h] * np.abs(at[seen] - i)
            y[i, h] = softmax(np.append(s, sinks[h]))[:-1] @ v[seen][:, h // 2].astype(np.float64)
    case("attention_near", q=q, k=k, v=v, sinks=sinks, slopes=slopes, segments=segments.astype(np.float32), y=y)


def more_experts():
    logits, width = 2 * f32(5, 8), 0.4
    ids, weights = [], []
    for row in logits.astype(np.float64):
        left, one, w = row.copy(), [], []
        for _ in range(2):
            best = int(left.argmax())
            near = ~((left[best] - row) / np.maximum(np.abs(row), left[best]) > width) & np.isfinite(left)
            w.append(1 / np.exp(left[near] - left[best]).sum())
            one.append(best)
            left[best] = -np.inf
        ids.append(one)
        weights.append(w)
    ids = np.array(ids)
    soft = np.sqrt(np.logaddexp(0, logits.astype(np.float64)))
    chosen = np.argsort(-soft, -1, kind="stable")[:, :3]
    picked = np.take_along_axis(soft, chosen, -1)
    case("moe_route_mixer", logits=logits, width=width, ids=ids.astype(np.float64), weights=np.array(weights), chosen=chosen.astype(np.float64),
         picked=picked / picked.sum(-1, keepdims=True) * 2.5)
    x, mix, s = f32(5, 3), f32(5, 2), f32(8)
    case("moe_spread", x=x, mix=mix, s=s, y=mix[..., None].astype(np.float64) * x[:, None].astype(np.float64), total=(mix[..., None].astype(np.float64) * x[:, None]).sum(1),
         scaled=mix.astype(np.float64) * s[ids])


def deltas_by_channel():
    hk, hv, dk, dv, t = 2, 4, 3, 2, 4
    q, k, v, decay, beta, start = f32(t, hk, dk), f32(t, hk, dk), f32(t, hv, dv), -np.abs(f32(t, hv, dk)), np.abs(f32(t, hv)) / 4, f32(hv, dk, dv)
    s, rows = start.astype(np.float64), []
    for i in range(t):
        s = s * np.exp(decay[i].astype(np.float64))[..., None]
        ki = np.repeat(k[i], hv // hk, 0).astype(np.float64)
        delta = (v[i] - np.einsum("hkv,hk->hv", s, ki)) * beta[i][:, None]
        s = s + np.einsum("hk,hv->hkv", ki, delta)
        rows.append(np.einsum("hkv,hk->hv", s, np.repeat(q[i], hv // hk, 0)) * 0.5)
    case("delta_by_channel", q=q, k=k, v=v, decay=decay, beta=beta, start=start, y=np.stack(rows), after=s)


for make in (activations, norms, linears, rotations, attentions, latent, experts, recurrences, numbers, forms, scales_and_means, near_attentions,
             more_experts, deltas_by_channel):
    make()
