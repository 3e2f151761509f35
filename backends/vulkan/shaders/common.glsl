// What every kernel is bound to, and what it is told at a dispatch: device.hpp has the same lists in the same order.
// A kernel says its local_size before it includes this. Rows of activations are F32, `stride` numbers apart, from an offset of the page on. Indices count numbers (texels where it says so).
#extension GL_EXT_control_flow_attributes : require

layout(push_constant) uniform PushBlock {
  uint rows, o, os, a, as_, b, bs, c, cs, w0, w1, w2, w3, n, k, m, h;
  int i0, i1, i2, i3, i4, i5, i6, i7;
  float f0, f1, f2, f3;
} p;
layout(set = 0, binding = 0) buffer OutF { float y[]; };
layout(set = 0, binding = 0) buffer OutI { int yi[]; };
layout(set = 0, binding = 1) buffer AF { float a[]; };
layout(set = 0, binding = 1) buffer AI { int ai[]; };
layout(set = 0, binding = 2) buffer BF { float b[]; };
layout(set = 0, binding = 2) buffer BI { int bi[]; };
layout(set = 0, binding = 3) buffer CF { float c[]; };
layout(set = 0, binding = 4) buffer PoolU { uint pool[]; };
layout(set = 0, binding = 4) buffer PoolF { float pool_f[]; };
layout(set = 0, binding = 5) buffer BatchI { int bt[]; };
layout(set = 0, binding = 5) buffer BatchF { float bt_f[]; };
layout(set = 0, binding = 6, rgba32f) uniform readonly imageBuffer A4;
layout(set = 0, binding = 7, rgba32ui) uniform readonly uimageBuffer W4;
layout(set = 0, binding = 8, r32ui) uniform readonly uimageBuffer W1;
layout(set = 0, binding = 9, r32ui) uniform readonly uimageBuffer V1;
layout(set = 0, binding = 10, rgba32ui) uniform readonly uimageBuffer P4;

const uint kNone = 0xFFFFFFFFu;

uint group_index() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }
uint lane_index() { return group_index() * gl_WorkGroupSize.x + gl_LocalInvocationID.x; }
float vector(uint i) { return uintBitsToFloat(imageLoad(V1, int(i)).x); }
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u; }
