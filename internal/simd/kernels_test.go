package simd

import (
	"errors"
	"testing"
)

// TestKernelsAreInGoWithoutGeneratedCode has a system that gives no memory for code.
func TestKernelsAreInGoWithoutGeneratedCode(t *testing.T) {
	calls := 0
	refused := cache[kernels[float32]]{plain: plain[float32], generate: func(Level) (*kernels[float32], error) {
		calls++
		return nil, errors.New("permission denied")
	}}
	everyLevel(t, func(t *testing.T) {
		k := refused.get()
		if k != refused.get() {
			t.Error("the kernels are not kept")
		}
		if k.code != nil || k.wide[0].plain == nil || k.lanes != 2 {
			t.Errorf("kernels of %d lanes are not those in Go", k.lanes)
		}
	})
	if want := len(Levels()) - 1; calls != want {
		t.Errorf("code is generated %d times for %d levels", calls, want)
	}
}

// BenchmarkGenerate times the first use of each kind of kernels.
func BenchmarkGenerate(b *testing.B) {
	level := Levels()[len(Levels())-1]
	for _, c := range []struct {
		name     string
		generate func() error
	}{
		{"f32", func() error { _, err := newKernels[float32](level); return err }},
		{"f64", func() error { _, err := newKernels[float64](level); return err }},
		{"packed", func() error { _, err := newPackedKernels(level); return err }},
		{"pieces", func() error { _, err := newPieceKernel(level); return err }},
		{"transpose", func() error { _, err := newTransposeKernels(level); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := c.generate(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
