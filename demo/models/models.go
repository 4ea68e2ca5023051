// Package models describes the networks of the demos as graphs: an MLP and a CNN for handwritten
// digits of 8×8 counts from 0 to 16, a language model of characters, and the field of the home page. All
// computation of a demo is in these graphs, so that it is the same on every device.
//
// Its results are modules, which demo/build writes for the pages and demo/digits and demo/gpt train in Go.
// Start reading at models.go, then gpt.go.
package models

import (
	"math"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

const (
	// Side is the height and width of a digit.
	Side = 8
	// Pixels is the number of pixels of a digit.
	Pixels = Side * Side
	// Classes is the number of classes.
	Classes = 10
	// Batch is the number of digits in a training step.
	Batch = 128
	// HistorySteps is the number of steps for which losses stay on the device.
	HistorySteps = 256
)

// Names of inputs and outputs.
const (
	Images        = "images"        // f32[batch,64], counts from 0 to 16
	Labels        = "labels"        // i32[batch], from 0 to 9
	Seed          = "seed"          // u32, input of the entry init
	Loss          = "loss"          // f32, the mean cross-entropy
	Predicted     = "predicted"     // i32[batch], the most probable class
	Correct       = "correct"       // i32, the number of correct ones
	Probabilities = "probabilities" // f32[batch,10]
	Key           = "key"           // u32[2], the random key, a state
)

// Model is a network for digits.
type Model struct {
	// Name is "mlp" or "cnn".
	Name string
	// params are its parameters in the order in which logits takes them.
	params []param
	// logits adds the network; images are f32[batch,64] from 0 to 1.
	logits func(b *ir.Builder, images ir.Value, params []ir.Value) ir.Value
}

// param is a parameter: a random weight, or, with fanIn 0, a bias that starts as zeros.
type param struct {
	name  string
	shape []int
	fanIn int
}

// MLP is 64 pixels, ReLU layers of 128 and 64 units, 10 classes. Column i of the parameter w1,
// f32[64,128], is the 8×8 pattern that unit i detects.
func MLP() Model {
	const first, second = 128, 64
	return Model{
		Name: "mlp",
		params: []param{
			{"w1", []int{Pixels, first}, Pixels},
			{"b1", []int{first}, 0},
			{"w2", []int{first, second}, first},
			{"b2", []int{second}, 0},
			{"w3", []int{second, Classes}, second},
			{"b3", []int{Classes}, 0},
		},
		logits: func(b *ir.Builder, x ir.Value, p []ir.Value) ir.Value {
			h := ops.Relu(b, ops.Linear(b, x, p[0], p[1]))
			h = ops.Relu(b, ops.Linear(b, h, p[2], p[3]))
			return ops.Linear(b, h, p[4], p[5])
		},
	}
}

// CNN is two 3×3 convolutions of 16 and 32 channels with ReLUs, a 2×2 max pool,
// a ReLU layer of 128 units and 10 classes. The parameter conv1 is
// f32[3,3,1,16].
func CNN() Model {
	const first, second, hidden, left = 16, 32, 128, Side / 2
	return Model{
		Name: "cnn",
		params: []param{
			{"conv1", []int{3, 3, 1, first}, 9},
			{"bias1", []int{first}, 0},
			{"conv2", []int{3, 3, first, second}, 9 * first},
			{"bias2", []int{second}, 0},
			{"w1", []int{left * left * second, hidden}, left * left * second},
			{"b1", []int{hidden}, 0},
			{"w2", []int{hidden, Classes}, hidden},
			{"b2", []int{Classes}, 0},
		},
		logits: func(b *ir.Builder, x ir.Value, p []ir.Value) ir.Value {
			batch := x.Type().Shape[0]
			h := ops.Reshape(b, x, batch, ir.N(Side), ir.N(Side), ir.N(1))
			for i := range 2 {
				h = ops.Relu(b, ops.Conv2D(b, h, p[2*i], p[2*i+1], ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}))
			}
			h = ops.MaxPool(b, h, ops.PoolAttrs{Sizes: []int{2, 2}})
			h = ops.Reshape(b, h, batch, ir.N(left*left*second))
			h = ops.Relu(b, ops.Linear(b, h, p[4], p[5]))
			return ops.Linear(b, h, p[6], p[7])
		},
	}
}

// All returns the models by name.
func All() map[string]Model { return map[string]Model{"mlp": MLP(), "cnn": CNN()} }

// images declares the pictures of a batch, and returns them from 0 to 1.
func images(b *ir.Builder, batch int) ir.Value {
	return ops.Mul(b, b.Input(Images, ir.F32, ir.Dims(batch, Pixels)...), ops.Const(b, ir.F32, 1./16))
}

// forward declares the parameters and adds the network for pictures from 0 to 1.
func (m Model) forward(b *ir.Builder, x ir.Value) ir.Value {
	params := make([]ir.Value, len(m.params))
	for i, p := range m.params {
		params[i] = b.Param(p.name, ir.F32, ir.Dims(p.shape...)...)
	}
	return m.logits(b, x, params)
}

// LossGraph returns the graph of the mean cross-entropy of a batch of pictures, randomly distorted
// in each step. The state Key is the random key.
func (m Model) LossGraph(batch int) (*ir.Graph, error) {
	return ir.Build(m.Name, func(b *ir.Builder) {
		labels := b.Input(Labels, ir.I32, ir.Dims(batch)...)
		key := b.State(Key, ir.U32, ir.N(2))
		b.SetState(Key, ops.FoldIn(b, key, ops.Const(b, ir.U32, 0)))
		x := distort(b, ops.FoldIn(b, key, ops.Const(b, ir.U32, 1)), images(b, batch))
		b.Output(Loss, ops.CrossEntropyMean(b, m.forward(b, x), labels))
	})
}

// StepGraph returns a step of Adam on a batch, with the learning rate as the
// input "lr" and the losses of the last HistorySteps steps as a state.
func (m Model) StepGraph(batch int) (*ir.Graph, error) {
	loss, err := m.LossGraph(batch)
	if err != nil {
		return nil, err
	}
	step, err := optim.Step(loss, Loss, optim.Adam{}, optim.Options{})
	if err != nil {
		return nil, err
	}
	return optim.History(step, Loss, HistorySteps)
}

// EvalGraph returns the graph that measures the network on images with labels.
func (m Model) EvalGraph(batch int) (*ir.Graph, error) {
	return ir.Build(m.Name+"_eval", func(b *ir.Builder) {
		labels := b.Input(Labels, ir.I32, ir.Dims(batch)...)
		logits := m.forward(b, images(b, batch))
		predicted := ops.ArgMax(b, logits, 1)
		right := ops.Convert(b, ops.Eq(b, predicted, labels), ir.I32)
		b.Output(Loss, ops.CrossEntropyMean(b, logits, labels))
		b.Output(Correct, ops.ReduceSum(b, right))
		b.Output(Predicted, predicted)
	})
}

// PredictGraph returns the graph of the probabilities of each class.
func (m Model) PredictGraph(batch int) (*ir.Graph, error) {
	return ir.Build(m.Name+"_predict", func(b *ir.Builder) {
		b.Output(Probabilities, ops.Softmax(b, m.forward(b, images(b, batch)), 1))
	})
}

// InitGraph returns the graph that initialises all states for a seed: weights normal with variance
// 2/(number of inputs), after He et al., biases, moments and the history zero. step is the result
// of StepGraph.
func (m Model) InitGraph(step *ir.Graph) (*ir.Graph, error) {
	return ir.Build(m.Name+"_init", func(b *ir.Builder) {
		key := seedKey(b)
		drawn := map[string]ir.Value{Key: key}
		for i, p := range m.params {
			if p.fanIn > 0 {
				z := ops.Normal(b, ops.FoldIn(b, key, ops.Const(b, ir.U32, float64(i+2))), ir.F32, ir.Dims(p.shape...)...)
				drawn[p.name] = ops.Mul(b, z, ops.Const(b, ir.F32, math.Sqrt(2/float64(p.fanIn))))
			}
		}
		for _, port := range step.Ports() {
			if port.Kind == ir.InputPort {
				continue
			}
			t := port.Value.Type()
			b.Port(ir.StatePort, port.Name, t)
			value, ok := drawn[port.Name]
			if !ok {
				value = ops.Zeros(b, t.DType, t.Shape...)
			}
			b.SetState(port.Name, value)
		}
	})
}

// Module returns the module of a demo, with entries that share their state: init (seed), step (batch
// digits and lr), eval (evalBatch digits), predict (one digit).
func (m Model) Module(batch, evalBatch int) (*ir.Module, error) {
	step, err := m.StepGraph(batch)
	if err != nil {
		return nil, err
	}
	entries := []ir.Entry{{Name: "step", Graph: step}}
	for _, e := range []struct {
		name string
		make func() (*ir.Graph, error)
	}{
		{"init", func() (*ir.Graph, error) { return m.InitGraph(step) }},
		{"eval", func() (*ir.Graph, error) { return m.EvalGraph(evalBatch) }},
		{"predict", func() (*ir.Graph, error) { return m.PredictGraph(1) }},
	} {
		g, err := e.make()
		if err != nil {
			return nil, err
		}
		entries = append(entries, ir.Entry{Name: e.name, Graph: g})
	}
	return ir.NewModule("digits-"+m.Name, entries...)
}
