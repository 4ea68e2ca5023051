package parallel

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Prediction is the predicted time of a run of a graph on one of several devices.
type Prediction struct {
	Seconds float64
	Compute float64 // seconds of products
	Network float64 // seconds of collectives; those that products overlap with do not add to Seconds
	Sent    int64   // bytes that the device sends, by [Traffic]
}

// Simulate predicts a run of a graph with collectives along the axes of a mesh, the last one fastest. A device
// makes the products in the order of the graph at rate, in floating-point operations per second, and beside
// them one collective at a time, each from the place that the graph has it. A product waits
// for the collectives of its operands. Everything else takes no time of its own: rate is
// that of a whole step, as a device alone or a smaller mesh reaches it. Collectives take [Network.Seconds].
// The body of a loop counts once. The error is of kind [ir.ErrSymbol] if a size is not constant, and [ir.ErrAttr] for
// an axis that the mesh does not have, or a rate that is not positive.
func (w Network) Simulate(g *ir.Graph, mesh []Axis, rate float64) (Prediction, error) {
	if err := g.NotNil(); err != nil {
		return Prediction{}, err
	}
	if !(rate > 0) {
		return Prediction{}, ir.Attrf("a rate of %g operations per second; it must be positive", rate)
	}
	s := &simulation{networks: map[string]Network{}, rate: rate, ready: map[ir.Value]float64{}}
	stride := 1
	for i := len(mesh) - 1; i >= 0; i-- {
		axis := w
		axis.Host = max(1, w.Host/stride)
		s.networks[mesh[i].Name] = axis
		stride *= mesh[i].Size
	}
	for _, n := range g.Nodes() {
		if err := s.add(n); err != nil {
			return Prediction{}, err
		}
	}
	sent, err := Traffic(g)
	return Prediction{Seconds: math.Max(s.clock, s.free), Compute: s.compute, Network: s.network, Sent: sent}, err
}

// simulation is the state of a device after some nodes.
type simulation struct {
	networks         map[string]Network // by axis
	rate             float64
	ready            map[ir.Value]float64
	clock, free      float64 // when the last product and the last collective end
	compute, network float64
}

func (s *simulation) add(n *ir.Node) error {
	begin, seconds := 0.0, 0.0
	for _, v := range n.Inputs() {
		begin = math.Max(begin, s.ready[v])
	}
	if ops.IsCollective(n) {
		mesh, _ := ops.MeshOf(n)
		size, constant := n.Input(0).Shape().Size().Const()
		network, known := s.networks[mesh.MeshAxis]
		if !constant || !known {
			return n.Fail(unpredictable(mesh.MeshAxis, constant))
		}
		seconds = network.Seconds(n.Op(), int64(size*n.Input(0).DType().Size()), mesh.Devices)
		begin = max(begin, s.free, s.clock)
		s.free, s.network = begin+seconds, s.network+seconds
	} else {
		flops, err := flopsOf(n)
		if err != nil {
			return err
		}
		if seconds = flops / s.rate; seconds > 0 {
			begin = math.Max(begin, s.clock)
			s.clock, s.compute = begin+seconds, s.compute+seconds
		}
	}
	for i := range n.NumResults() {
		s.ready[n.Result(i)] = begin + seconds
	}
	return nil
}

// unpredictable returns why a collective has no time: its size, or the axis.
func unpredictable(axis string, constant bool) error {
	if !constant {
		return ir.Errorf(ir.ErrSymbol, "its size is not constant")
	}
	return ir.Attrf("axis %q is not of the mesh", axis)
}

// flopsOf returns the operations of the products in a node, 0 if it has none.
func flopsOf(n *ir.Node) (float64, error) {
	if a, ok := n.Attrs().(*ops.DotAttrs); ok {
		shape, x := n.Result(0).Shape().Clone(), n.Input(0).Shape()
		for _, axis := range a.LhsContract {
			shape = append(shape, x[(axis+len(x))%len(x)])
		}
		size, ok := shape.Size().Const()
		if !ok {
			return 0, n.Fail(ir.Errorf(ir.ErrSymbol, "its size is not constant"))
		}
		return 2 * float64(size), nil // a multiplication and an addition
	}
	inside := n.Subgraphs()
	if n.Def().IsComposite() {
		body, err := ir.Inline(n)
		if err != nil {
			return 0, err
		}
		inside = append(inside[:len(inside):len(inside)], body)
	}
	sum := 0.0
	for _, g := range inside {
		for _, inner := range g.Nodes() {
			flops, err := flopsOf(inner)
			if err != nil {
				return 0, err
			}
			sum += flops
		}
	}
	return sum, nil
}
