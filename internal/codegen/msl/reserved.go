package msl

import "github.com/rlx-go/rlx/internal/codegen/clike"

// reserved holds the names that a kernel's variables cannot have: keywords of C++ and
// MSL, and the functions and types of the generated code.
var reserved = func() map[string]bool {
	out := clike.Words(clike.KeywordsOfCPP, `
		kernel vertex fragment device constant thread threadgroup threadgroup_imageblock half uchar ushort uint ulong
		bfloat bfloat2 bfloat4 atomic_int atomic_uint metal precise fast as_type atomic_load_explicit atomic_fetch_add_explicit
		atomic_fetch_max_explicit atomic_fetch_min_explicit atomic_fetch_or_explicit memory_order_relaxed mem_flags
		threadgroup_barrier simd_sum simd_max simd_min run Run repeat first_group wanted bf16_to_f32 f32_to_bf16
		local_id local_number group_id simd_lane simd_lanes uint3
		fabs floor ceil trunc sqrt rsqrt abs min max popcount`)
	for _, name := range typeNames {
		out[name+"2"], out[name+"4"] = true, true
	}
	return out
}()
