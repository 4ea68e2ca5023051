package ops_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// partsOf gives each device its part, along the first axis, as an input.
func partsOf(name string, x *ir.Array) []map[string]*ir.Array {
	out := make([]map[string]*ir.Array, x.Dims[0])
	for i, part := range pieces(x, 0, x.Dims[0]) {
		part.Dims = part.Dims[1:]
		out[i] = map[string]*ir.Array{name: part}
	}
	return out
}

// together stacks the results of the devices.
func together(out []map[string]*ir.Array, name string) *ir.Array {
	all := &ir.Array{DType: ir.F64, Dims: append([]int{len(out)}, out[0][name].Dims...)}
	for _, results := range out {
		all.F = append(all.F, results[name].F...)
	}
	return all
}

// onDevices computes a graph on several devices, node by node.
func onDevices(t *testing.T, g *ir.Graph, inputs []map[string]*ir.Array) []map[string]*ir.Array {
	t.Helper()
	values := make([]map[ir.Value]*ir.Array, len(inputs))
	for i := range values {
		values[i] = map[ir.Value]*ir.Array{}
		for _, p := range g.Ports() {
			values[i][p.Value] = inputs[i][p.Name]
		}
	}
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		in := make([][]*ir.Array, len(inputs))
		for i := range in {
			for _, v := range n.Inputs() {
				in[i] = append(in[i], values[i][v])
			}
		}
		for i, out := range inStep(t, n, in) {
			for k, x := range out {
				values[i][n.Result(k)] = x
			}
		}
	}
	results := make([]map[string]*ir.Array, len(inputs))
	for i := range results {
		results[i] = map[string]*ir.Array{}
		for _, o := range g.Outputs() {
			results[i][o.Name] = values[i][o.Value]
		}
	}
	return results
}

// inStep returns the results of a node on each device, given its operands there.
func inStep(t *testing.T, n *ir.Node, in [][]*ir.Array) [][]*ir.Array {
	t.Helper()
	out := make([][]*ir.Array, len(in))
	set := func(i int, x *ir.Array) { out[i] = []*ir.Array{x} }
	for i := range in {
		switch a := n.Attrs().(type) {
		case *ops.AllReduceAttrs:
			set(i, reducedAcross(in, a.Reduction))
		case *ops.AlongAttrs:
			if n.Op() == ops.OpAllGather {
				set(i, joined(column(in), a.Axis))
			} else {
				set(i, pieces(reducedAcross(in, ops.AllReduceSum), a.Axis, len(in))[i])
			}
		case *ops.AllToAllAttrs:
			var got []*ir.Array
			for _, from := range column(in) {
				got = append(got, pieces(from, a.SplitAxis, len(in))[i])
			}
			set(i, joined(got, a.ConcatAxis))
		case *ops.PermuteAttrs:
			x := ir.NewArray(ir.F64, in[i][0].Dims...)
			if at := slices.Index(a.Targets, i); at >= 0 {
				x = in[a.Sources[at]][0]
			}
			set(i, x)
		case *ops.RootAttrs:
			set(i, in[a.Root][0])
		case *ops.MeshAttrs:
			set(i, ir.Ints(ir.I32, []int64{int64(i)}))
			out[i][0].Dims = nil
		default:
			out[i] = evalNode(t, n, in[i])
		}
	}
	return out
}

func column(in [][]*ir.Array) []*ir.Array {
	out := make([]*ir.Array, len(in))
	for i := range in {
		out[i] = in[i][0]
	}
	return out
}

func reducedAcross(in [][]*ir.Array, reduction string) *ir.Array {
	sum := in[0][0].Clone()
	for _, x := range column(in)[1:] {
		for i, v := range x.F {
			switch reduction {
			case ops.AllReduceMax:
				sum.F[i] = max(sum.F[i], v)
			case ops.AllReduceMin:
				sum.F[i] = min(sum.F[i], v)
			default:
				sum.F[i] += v
			}
		}
	}
	if reduction == ops.AllReduceMean {
		for i := range sum.F {
			sum.F[i] /= float64(len(in))
		}
	}
	return sum
}

// pieces cuts an array along an axis into equal parts.
func pieces(x *ir.Array, axis, count int) []*ir.Array {
	outer, inner := 1, 1
	for i, d := range x.Dims {
		if i < axis {
			outer *= d
		} else {
			inner *= d
		}
	}
	dims := slices.Clone(x.Dims)
	dims[axis] /= count
	out := make([]*ir.Array, count)
	for k := range out {
		out[k] = &ir.Array{DType: x.DType, Dims: slices.Clone(dims)}
		for o := range outer {
			from := o*inner + k*inner/count
			out[k].F = append(out[k].F, x.F[from:from+inner/count]...)
		}
	}
	return out
}

// joined is the reverse of pieces.
func joined(parts []*ir.Array, axis int) *ir.Array {
	outer := 1
	for _, d := range parts[0].Dims[:axis] {
		outer *= d
	}
	out := &ir.Array{DType: parts[0].DType, Dims: slices.Clone(parts[0].Dims)}
	out.Dims[axis] *= len(parts)
	for o := range outer {
		for _, p := range parts {
			inner := len(p.F) / outer
			out.F = append(out.F, p.F[o*inner:(o+1)*inner]...)
		}
	}
	return out
}

func evalNode(t *testing.T, n *ir.Node, in []*ir.Array) []*ir.Array {
	t.Helper()
	inputs := map[string]*ir.Array{}
	g := must(ir.Build("node", func(b *ir.Builder) {
		var ports values
		for i, v := range n.Inputs() {
			name := "in" + strconv.Itoa(i)
			inputs[name] = in[i]
			ports = append(ports, b.Port(ir.InputPort, name, v.Type()))
		}
		for i, v := range b.Copy(n, ports) {
			b.Output("out"+strconv.Itoa(i), v)
		}
	}))(t)
	out, err := evalHeld(g, inputs, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
