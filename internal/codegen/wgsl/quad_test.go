package wgsl_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// quadKernel reads vectors from arrays of the given type and has sums c0 to c3.
func quadKernel(t dtype.DType, define, body []loop.Stmt) *loop.Kernel {
	vectors := func(name string, access loop.Access) loop.Array {
		return loop.Array{Name: name, DType: t, Width: 4, Len: 8, Access: access}
	}
	k := kernelOn(t, define...)
	k.Body = append(k.Body,
		&loop.For{Var: "k", Start: i32(0), End: i32(8), Step: i32(1), Body: append([]loop.Stmt{
			&loop.LoadVec{Names: []string{"a0", "a1", "a2", "a3"}, Array: 2, At: iv("k")},
			&loop.LoadVec{Names: []string{"b0", "b1", "b2", "b3"}, Array: 3, At: iv("k")},
		}, body...)},
		&loop.Store{Array: 1, At: local, Value: s.FreeVar("c2", t)},
		&loop.StoreVec{Array: 4, At: local, Values: numbers(t, "c0", "c1", "c2", "c3")})
	k.Arrays = append(k.Arrays, vectors("a", loop.Read), vectors("b", loop.Read), vectors("c", loop.ReadWrite))
	return k
}

// numbers are variables.
func numbers(t dtype.DType, names ...string) (list []s.Expr) {
	for _, name := range names {
		list = append(list, s.FreeVar(name, t))
	}
	return list
}

// TestSumsWrittenAsVectors has four sums that become a vector, and cases in which they do not.
func TestSumsWrittenAsVectors(t *testing.T) {
	f := func(name string) s.Expr { return s.FreeVar(name, dtype.F32) }
	assign := func(name string, value s.Expr) loop.Stmt { return &loop.Assign{Name: name, Value: value} }
	// each makes a statement for each of some sums.
	each := func(sums string, of func(sum s.Expr, j string) s.Expr) (list []loop.Stmt) {
		for j, sum := range strings.Fields(sums) {
			list = append(list, assign(sum, of(f(sum), strconv.Itoa(j))))
		}
		return list
	}
	row := func(sums string) []loop.Stmt {
		return each(sums, func(sum s.Expr, j string) s.Expr { return s.Add(sum, s.Mul(f("a1"), f("b"+j))) })
	}
	with := func(list ...string) (body []loop.Stmt) {
		for j, x := range list {
			sum := "c" + strconv.Itoa(j)
			body = append(body, assign(sum, s.Add(f(sum), s.Mul(f("a1"), f(x)))))
		}
		return body
	}
	zeros := func(names string) (list []loop.Stmt) {
		for _, name := range strings.Fields(names) {
			list = append(list, &loop.Var{Name: name, Init: f32(0)})
		}
		return list
	}
	const all = "c0 c1 c2 c3"
	few := zeros(all)
	whole := []string{"var c0 = vec4<f32>(0.0, 0.0, 0.0, 0.0);\n  for", "out[local_x] = c0.z;\n  c[local_x] = c0;"}
	apart := []string{"var c0 = 0.0;\n  var c1 = 0.0;", "out[local_x] = c2;\n  c[local_x] = vec4<f32>(c0, c1, c2, c3);"}
	folder := t.TempDir()
	for _, c := range []struct {
		name         string
		define, body []loop.Stmt
		want         []string
	}{
		{"a number times a vector", few, row(all), append(whole, "    c0 += v0.y * v1;\n  }")},
		{"a vector times a number", few, each(all, func(sum s.Expr, j string) s.Expr { return s.Add(sum, s.Mul(f("b"+j), f("a0"))) }), append(whole, "c0 += v0.x * v1;")},
		{"a multiply-add", few, each(all, func(sum s.Expr, j string) s.Expr { return s.Fma(f("a3"), f("b"+j), sum) }), append(whole, "c0 += v0.w * v1;")},
		{"a member of the vector itself", few, each(all, func(sum s.Expr, j string) s.Expr { return s.Add(sum, s.Mul(f("b0"), f("b"+j))) }), append(whole, "c0 += v1.x * v1;")},
		{
			"several products, one after the other", few, each(all, func(sum s.Expr, j string) s.Expr {
				return s.Add(s.Fma(f("a0"), f("b"+j), sum), s.Mul(f("b3"), f("a"+j)))
			}), append(whole, "c0 = c0 + v0.x * v1 + v1.w * v0;"),
		},
		{"several rows", few, append(row(all), row(all)...), append(whole, "    c0 += v0.y * v1;\n    c0 += v0.y * v1;\n")},
		{"in a branch", few, []loop.Stmt{&loop.If{Cond: s.Lt(iv("k"), i32(3)), Then: row(all)}}, append(whole, "if (k < 3) {\n      c0 += v0.y * v1;\n    }")},
		{"beside others", append(zeros("d"), few...), append([]loop.Stmt{assign("d", s.Add(f("d"), f("a0")))}, row(all)...), append(whole, "var d = 0.0;\n", "    d += v0.x;\n    c0 += v0.y * v1;")},

		{"a sum that changes otherwise", few, append(row(all), assign("c3", f("a0"))), apart},
		{"three", few, row("c0 c1 c2"), apart},
		{"sums in another order", few, row("c1 c0 c2 c3"), apart},
		{"members in another order", few, with("b1", "b0", "b2", "b3"), apart},
		{"members of different vectors", few, with("b0", "b1", "a2", "a3"), apart},
		{"rows of other sums", append(zeros(all), zeros("d")...), append(row(all), row("c1 c2 c3 d")...), apart},
		{"different numbers", few, each(all, func(sum s.Expr, j string) s.Expr { return s.Add(sum, s.Mul(f("a"+j), f("b"+j))) }), apart},
		{"a sum as the number", few, each(all, func(sum s.Expr, j string) s.Expr { return s.Add(sum, s.Mul(f("c0"), f("b"+j))) }), apart},
		{"a difference", few, each(all, func(sum s.Expr, j string) s.Expr { return s.Sub(sum, s.Mul(f("a0"), f("b"+j))) }), apart},
		{"a product of its own", few, each(all, func(_ s.Expr, j string) s.Expr { return s.Mul(f("a0"), f("b"+j)) }), apart},
		{"sums that do not begin side by side", append(zeros("c0 c1 d"), zeros("c2 c3")...), row(all), []string{"var c0 = 0.0;", "c1 += v0.y * v1.y;"}},
		{"a sum that begins elsewhere", append(zeros("c0 c1 c2"), &loop.Var{Name: "c3", Init: in(dtype.F32)}), row(all), apart},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := wgsl.Print(quadKernel(dtype.F32, c.define, c.body))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			file := filepath.Join(folder, strings.ReplaceAll(c.name, " ", "_")+".wgsl")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
	if out, err := node(t, nil, "check/tint.mjs", folder); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSumsOfOtherTypesAreNotMerged has sums of f16: only those of f32 are merged into vectors.
func TestSumsOfOtherTypesAreNotMerged(t *testing.T) {
	var define, body []loop.Stmt
	for _, j := range "0123" {
		sum, x := "c"+string(j), numbers(dtype.F16, "a0", "b"+string(j))
		define = append(define, &loop.Var{Name: sum, Init: s.ConstF(dtype.F16, 0)})
		body = append(body, &loop.Assign{Name: sum, Value: s.Add(s.FreeVar(sum, dtype.F16), s.Mul(x[0], x[1]))})
	}
	text, err := wgsl.Print(quadKernel(dtype.F16, define, body))
	if err != nil || !strings.Contains(text, "c1 += v0.x * v1.y;") {
		t.Errorf("error %v, no sums apart in\n%s", err, text)
	}
}
