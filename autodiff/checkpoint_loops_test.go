package autodiff_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// checkpointedLoop is a scan whose step is under a Checkpoint.
func checkpointedLoop(b *ir.Builder, l ops.Loop) (carries, ys []ir.Value) {
	body := l.Body
	l.Body = func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
		n, m := len(consts), len(carries)
		out := autodiff.Checkpoint(b, slices.Concat(consts, carries, xs), func(b *ir.Builder, in []ir.Value) []ir.Value {
			next, ys := body(b, in[:n], in[n:n+m], in[n+m:])
			return slices.Concat(next, ys)
		})
		return out[:m], out[m:]
	}
	return ops.Scan(b, l)
}

// underCheckpoint is a scan under a Checkpoint, as a segment of a longer one is.
func underCheckpoint(b *ir.Builder, l ops.Loop) (carries, ys []ir.Value) {
	n, m := len(l.Consts), len(l.Carries)
	out := autodiff.Checkpoint(b, slices.Concat(l.Consts, l.Carries, l.Xs), func(b *ir.Builder, in []ir.Value) []ir.Value {
		l.Consts, l.Carries, l.Xs = in[:n], in[n:n+m], in[n+m:]
		carries, ys := checkpointedLoop(b, l)
		return slices.Concat(carries, ys)
	})
	return out[:m], out[m:]
}

// checkpointedBranch is a cond under a Checkpoint.
func checkpointedBranch(b *ir.Builder, p ir.Value, operands []ir.Value, yes, no ops.Branch) []ir.Value {
	return autodiff.Checkpoint(b, slices.Concat([]ir.Value{p}, operands), func(b *ir.Builder, in []ir.Value) []ir.Value {
		return ops.Cond(b, in[0], in[1:], yes, no)
	})
}

// checkpointedFunctions are loops and branches that checkpoints are put into, with a
// custom function and a while_loop among them.
func checkpointedFunctions() []controlled {
	square := func(b *ir.Builder, x ir.Value) ir.Value {
		return autodiff.CustomVJP(b, []ir.Value{x}, func(b *ir.Builder, in []ir.Value) (results, kept []ir.Value) {
			y := ops.Mul(b, in[0], in[0])
			return []ir.Value{y}, []ir.Value{in[0], ops.Sin(b, y), y}
		}, func(b *ir.Builder, kept, ct []ir.Value) []ir.Value {
			return []ir.Value{ops.Add(b, ops.Mul(b, ops.Add(b, kept[0], kept[0]), ct[0]), ops.Mul(b, ops.Sub(b, kept[1], ops.Sin(b, kept[2])), ct[0]))}
		})[0]
	}
	return append(slices.Clone(controlledFunctions),
		controlled{"a custom function in a loop", wave(1, 4, 3), wave(2, 3), func(b *ir.Builder, x, w ir.Value, scan loop, _ branch) ir.Value {
			c, ys := scan(b, ops.Loop{
				Consts: []ir.Value{w}, Carries: []ir.Value{w}, Xs: []ir.Value{x},
				Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
					h := ops.Sin(b, ops.Add(b, square(b, carries[0]), ops.Mul(b, square(b, xs[0]), square(b, consts[0]))))
					return []ir.Value{h}, []ir.Value{square(b, h)}
				},
			})
			return sumAll(b, c[0], ys[0])
		}},
		controlled{"a while_loop in a loop", wave(1, 3, 2), wave(2, 2), func(b *ir.Builder, x, w ir.Value, scan loop, _ branch) ir.Value {
			c, _ := scan(b, ops.Loop{
				Consts: []ir.Value{w}, Carries: []ir.Value{w}, Xs: []ir.Value{x},
				Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
					return ops.WhileLoop(b, ops.While{
						Consts: slices.Concat(consts, xs), Carries: carries, MaxSteps: 3,
						Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value {
							return ops.Lt(b, ops.ReduceSum(b, c[0]), constant(b, 0.9))
						},
						Body: func(b *ir.Builder, consts, c []ir.Value) []ir.Value {
							return []ir.Value{ops.Add(b, ops.Sin(b, ops.Mul(b, c[0], consts[0])), ops.Exp(b, consts[1]))}
						},
					}), nil
				},
			})
			return sumAll(b, c[0])
		}})
}

func TestTransformsOfCheckpointedLoopsEqualUnrolled(t *testing.T) {
	for _, c := range checkpointedFunctions() {
		for name, transform := range controlTransforms {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				g, err := transform(c.graph(t, unrolled, selected))
				want := c.referenceOf(t, must(t, g, err))
				for _, scan := range []loop{checkpointedLoop, underCheckpoint} {
					got, err := transform(c.graph(t, scan, checkpointedBranch))
					must(t, got, err)
					want.check(t, got)
					if name == "grad" {
						simple, err := passes.Run(got, passes.Options{})
						must(t, simple, err)
						want.check(t, simple)
					}
				}
			})
		}
	}
}

func TestGradientsOfCheckpointedLoopsAreRightToSecondOrder(t *testing.T) {
	for _, c := range checkpointedFunctions() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, scan := range []loop{checkpointedLoop, underCheckpoint} {
				err := gradcheck.Check(c.graph(t, scan, checkpointedBranch), values{"x": c.x, "w": c.w}, gradcheck.Options{Order: 2})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestPoliciesInLoopsChangeNoGradient compares gradients, and their gradients, with
// those of unrolled loops without a policy.
func TestPoliciesInLoopsChangeNoGradient(t *testing.T) {
	for _, c := range checkpointedFunctions() {
		gradient := func(t *testing.T, scan loop, cond branch, keep autodiff.Policy) *ir.Graph {
			o := autodiff.GradOptions{Loss: "loss", Wrt: []string{"x", "w"}, Policy: keep, Missing: autodiff.MissingIsZero}
			g, err := autodiff.GradWith(c.graph(t, scan, cond), o)
			return must(t, g, err)
		}
		again := func(t *testing.T, g *ir.Graph, keep autodiff.Policy) *ir.Graph {
			h, err := autodiff.VJPWith(g, autodiff.Options{Wrt: []string{"x", "w"}, Policy: keep, Missing: autodiff.MissingIsZero})
			return must(t, h, err)
		}
		unrolledGradient := gradient(t, unrolled, selected, nil)
		first, second := c.referenceOf(t, unrolledGradient), c.referenceOf(t, again(t, unrolledGradient, nil))
		for name, keep := range policies() {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				for _, scan := range []loop{ops.Scan, underCheckpoint} {
					g := gradient(t, scan, ops.Cond, keep)
					first.check(t, g)
					second.check(t, again(t, g, keep))
				}
			})
		}
	}
}

// evaluations counts how often ops of a kind run, in loops as often as they go round.
func evaluations(g *ir.Graph, op ir.Op) int {
	count := 0
	for _, n := range g.Nodes() {
		times := 1
		if a, ok := n.Attrs().(*ops.ScanAttrs); ok {
			times, _ = a.Length.Const()
		}
		if n.Op() == op {
			count++
		}
		for _, s := range n.Subgraphs() {
			count += times * evaluations(s, op)
		}
	}
	return count
}

// TestCheckpointsRecomputeOncePerLevel counts the steps of nested loops, each of which computes one
// tanh that the backward pass needs.
func TestCheckpointsRecomputeOncePerLevel(t *testing.T) {
	const steps = 4 * 5 * 6
	nested := func(r ...region) *ir.Graph {
		return build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(4, 5, 6, 8)...)
			w := b.Param("w", ir.F32, ir.Dims(8)...)
			var level func(b *ir.Builder, depth int, w, h, x ir.Value) ir.Value
			level = func(b *ir.Builder, depth int, w, h, x ir.Value) ir.Value {
				if depth == len(r) {
					return ops.Tanh(b, ops.Add(b, ops.Mul(b, h, w), x))
				}
				return scanned(b, r[depth], []ir.Value{w}, []ir.Value{h}, []ir.Value{x}, func(b *ir.Builder, c, h, x []ir.Value) []ir.Value {
					return []ir.Value{level(b, depth+1, c[0], h[0], x[0])}
				})[0]
			}
			b.Output("loss", ops.ReduceSum(b, level(b, 0, w, w, x)))
		})
	}
	for _, c := range []struct {
		name    string
		regions []region
		forward int // how often the way forward is computed
	}{
		{"none", []region{plainly, plainly, plainly}, 1},
		{"segments", []region{autodiff.Checkpoint, plainly, plainly}, 2},
		{"segments of segments", []region{autodiff.Checkpoint, autodiff.Checkpoint, plainly}, 3},
		{"each step", []region{plainly, plainly, autodiff.Checkpoint}, 2},
		{"all", []region{autodiff.Checkpoint, autodiff.Checkpoint, autodiff.Checkpoint}, 4},
	} {
		g, err := autodiff.Grad(nested(c.regions...), "loss")
		must(t, g, err)
		g, err = passes.Run(g, passes.Options{})
		must(t, g, err)
		got := evaluations(g, ops.OpTanh)
		t.Logf("%s: %d evaluations for %d steps", c.name, got, steps)
		if got > c.forward*steps {
			t.Errorf("%s: %d evaluations for %d steps, want at most %d times as many", c.name, got, steps, c.forward)
		}
	}
}
