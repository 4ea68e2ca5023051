package autodiff

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// The prefixes of the names that transforms add.
const (
	tangentPrefix   = "tangent"
	cotangentPrefix = "cotangent"
	gradPrefix      = "grad"
	hvpPrefix       = "hvp"
	seriesPrefix    = "series"
	residualPrefix  = "residual"
)

// TangentName returns the name of the input that [JVP] adds for a port and of the output that it
// adds for an output: "tangent/x".
func TangentName(name string) string { return tangentPrefix + "/" + name }

// CotangentName returns the name of the input that [VJP] adds for an output: "cotangent/y".
func CotangentName(name string) string { return cotangentPrefix + "/" + name }

// GradName returns the name of the output that [Grad], [ValueAndGrad] and [VJP] add for a port:
// "grad/x".
func GradName(name string) string { return gradPrefix + "/" + name }

// AtLevel returns the name that the level-th transform of the same kind uses instead of a name of
// the first level: AtLevel(2, GradName("x")) is "grad2/x", which Grad adds to a graph that already
// has outputs "grad/…". Levels below 2 return the name unchanged.
func AtLevel(level int, name string) string {
	prefix, rest, found := strings.Cut(name, "/")
	if level < 2 || !found {
		return name
	}
	return prefix + strconv.Itoa(level) + "/" + rest
}

// HVPName returns the name of the output that [HVP] adds for a port: "hvp/x".
func HVPName(name string) string { return hvpPrefix + "/" + name }

// OrderName returns the name of the output that [NthOrder] and [Directional] add for the k-th
// derivative of an output: "d2/y".
func OrderName(k int, output string) string { return position("d", k) + "/" + output }

// DirectionName returns the name of the k-th direction that [Directional] adds for a port, from 1:
// "direction1/x".
func DirectionName(k int, port string) string { return position("direction", k) + "/" + port }

// freePrefix returns the prefix followed by a slash, with a number if ports or outputs of g already
// have the prefix.
func freePrefix(g *ir.Graph, prefix string) string {
	for n := 1; ; n++ {
		p := prefix + "/"
		if n > 1 {
			p = prefix + strconv.Itoa(n) + "/"
		}
		if !hasPrefix(g, p) {
			return p
		}
	}
}

func hasPrefix(g *ir.Graph, prefix string) bool {
	for _, p := range g.Ports() {
		if strings.HasPrefix(p.Name, prefix) {
			return true
		}
	}
	for _, o := range g.Outputs() {
		if strings.HasPrefix(o.Name, prefix) {
			return true
		}
	}
	return false
}

// portIndices returns the indices of the named ports of g. The error is of kind [ir.ErrName] for an
// unknown port or one named twice, and [ir.ErrDType] for one whose element type has no derivatives.
func portIndices(g *ir.Graph, names []string) ([]int, error) {
	var out []int
	seen := map[string]bool{}
	for _, name := range names {
		i := portIndex(g, name)
		if i < 0 {
			return nil, g.UnknownPort(name)
		}
		if seen[name] {
			return nil, ir.Errorf(ir.ErrName, "port %q of graph %q is given twice", name, g.Name())
		}
		if t := g.Ports()[i].Value.Type(); !derive.Differentiable(t.DType) {
			return nil, ir.DTypef("port %q is %s; a derivative needs floats", name, t)
		}
		seen[name] = true
		out = append(out, i)
	}
	return out, nil
}

func portIndex(g *ir.Graph, name string) int {
	for i, p := range g.Ports() {
		if p.Name == name {
			return i
		}
	}
	return -1
}

// differentiable returns the names of the ports of the given kinds (nil: all kinds) whose element
// type has derivatives.
func differentiable(g *ir.Graph, kinds ...ir.PortKind) []string {
	var out []string
	for _, p := range g.Ports() {
		if derive.Differentiable(p.Value.DType()) && (kinds == nil || slices.Contains(kinds, p.Kind)) {
			out = append(out, p.Name)
		}
	}
	return out
}

// plainOutputs returns the indices of the plain outputs of g whose element type has derivatives.
func plainOutputs(g *ir.Graph) []int {
	var out []int
	for i, o := range g.Outputs() {
		if !o.State && derive.Differentiable(o.Value.DType()) {
			out = append(out, i)
		}
	}
	return out
}

// position returns prefix followed by i.
func position(prefix string, i int) string { return prefix + strconv.Itoa(i) }

// scalarOutput returns the index of a plain output of rank 0 and of a floating element type.
func scalarOutput(g *ir.Graph, name string) (int, error) {
	for i, o := range g.Outputs() {
		if o.State || o.Name != name {
			continue
		}
		if t := o.Value.Type(); len(t.Shape) != 0 {
			return 0, ir.Shapef("output %q is %s; a gradient needs a scalar", name, t)
		} else if !t.DType.IsFloat() || !derive.Differentiable(t.DType) {
			return 0, ir.DTypef("output %q is %s; a gradient needs a real number", name, t)
		}
		return i, nil
	}
	return 0, g.UnknownOutput(name)
}
