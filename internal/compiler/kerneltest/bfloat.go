package kerneltest

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// BFloat returns kernels that store bf16 and compute in f32.
func BFloat() []*Case { return []*Case{bfloatScaled(1), bfloatScaled(4)} }

// bfloatScaled is y[i] = x[i]*1.1, with a vector of the given width per thread.
func bfloatScaled(width int) *Case {
	const n, threads = 256, 32
	name := map[int]string{1: "bfloat_scaled", 4: "bfloat_scaled_vec4"}[width]
	x, y := input("x", dtype.BF16, n), output("y", dtype.BF16, n)
	scaled := func(e expr) expr { return s.Convert(s.Mul(s.Convert(e, dtype.F32), f32(1.1)), dtype.BF16) }
	body := block{let("i", loop.GlobalID(0, threads, n/width/threads))}
	if width == 1 {
		body = append(body, store(1, iv("i"), scaled(s.LoadAt(0, dtype.BF16, iv("i")))))
	} else {
		x, y = vec4(x), vec4(y)
		names := []string{"a", "b", "c", "d"}
		var values []expr
		for _, name := range names {
			values = append(values, scaled(s.FreeVar(name, dtype.BF16)))
		}
		body = append(body, &loop.LoadVec{Names: names, Array: 0, At: iv("i")}, &loop.StoreVec{Array: 1, At: iv("i"), Values: values})
	}
	values := mapped(floats(7, n), dtype.BF16.Round)
	return &Case{
		Kernel: &loop.Kernel{
			Name: name, Arrays: []loop.Array{x, y}, Workgroup: [3]int{threads, 1, 1}, Groups: [3]int{n / width / threads, 1, 1}, Body: body,
		},
		Arrays: [][]float64{values, zeros(n)},
		Want: [][]float64{nil, mapped(values, func(v float64) float64 {
			return dtype.BF16.Round(float64(float32(v) * float32(1.1)))
		})},
	}
}
