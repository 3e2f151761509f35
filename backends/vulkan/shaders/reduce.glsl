// Sums over the 32 invocations of a group: one tree, whatever the device.
shared float parts[32];
float sum_of_group(float x) {
  uint lane = gl_LocalInvocationID.x;
  parts[lane] = x;
  barrier();
  for (uint step = 16u; step > 0u; step >>= 1) {
    if (lane < step) parts[lane] = parts[lane] + parts[lane + step];
    barrier();
  }
  float all = parts[0];
  barrier();
  return all;
}
float max_of_group(float x) {
  uint lane = gl_LocalInvocationID.x;
  parts[lane] = x;
  barrier();
  for (uint step = 16u; step > 0u; step >>= 1) {
    if (lane < step) {
      float other = parts[lane + step];
      parts[lane] = other > parts[lane] ? other : parts[lane];
    }
    barrier();
  }
  float all = parts[0];
  barrier();
  return all;
}
