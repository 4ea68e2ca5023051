package rlx_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx"
)

// BenchmarkOpenSizes compares a call with open sizes with one of a program for these sizes: with
// the sizes of the bucket, and with padded ones.
func BenchmarkOpenSizes(b *testing.B) {
	g := encoder(b)
	open := compileEncoder(b, g, rlx.CompileOptions{})
	for _, seq := range []int{64, 48, 33} {
		bound, err := g.Bind(map[string]int{"batch": 4, "seq": seq})
		if err != nil {
			b.Fatal(err)
		}
		for name, p := range map[string]*rlx.Program{"open": open, "exact": compileEncoder(b, bound, rlx.CompileOptions{})} {
			b.Run(fmt.Sprintf("%d steps/%s", seq, name), func(b *testing.B) {
				in := tokens(4, seq)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.Call(b.Context(), "encode", in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
