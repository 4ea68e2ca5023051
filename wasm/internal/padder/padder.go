// Package padder is the interface of package padding to a JavaScript host, apart from the transport of
// bytes. Graphs come and go in their text form, as the compiler is another module.
package padder

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/padding"
	"github.com/rlx-go/rlx/internal/compiler/padding/padded"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// New returns a service without any analyses.
func New() *wire.Service {
	return wire.New(map[string]wire.Method{"analyze": analyze, "fit": wire.On(fit), "pad": wire.On(pad), "measure": measure})
}

// analyze (text of a graph, symbols to pad) → analysis.
func analyze(c *wire.Service, r *wire.Request, w *wire.Response) error {
	text, open := r.Text(), r.Texts()
	if r.Err() != nil {
		return r.Err()
	}
	g, err := ir.Parse(text)
	if err != nil {
		return err
	}
	a, err := padding.Analyze(g, func(symbol string) bool { return slices.Contains(open, symbol) })
	if err == nil {
		w.U32(c.Add(a))
	}
	return err
}

// fit (analysis, true sizes, sizes to compile for) → whether the padded graph serves the true sizes; if so,
// the crops of the outputs: name, true shape, and the true and the padded sizes of their axes.
func fit(a *padding.Analysis, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	sizes, bound := r.Symbols(), r.Symbols()
	if r.Err() != nil {
		return r.Err()
	}
	if a.Fit().Check(sizes, bound) != nil {
		w.Bool(false)
		return nil
	}
	w.Bool(true)
	crops, err := a.Fit().Crops(sizes, bound)
	w.U32(len(crops))
	for _, crop := range crops {
		w.Text(crop.Name)
		writeSizes(w, crop.Dims)
		writeSizes(w, crop.Box)
		writeSizes(w, crop.Full)
	}
	return err
}

func writeSizes(w *wire.Response, sizes []int) {
	w.U32(len(sizes))
	for _, n := range sizes {
		w.U32(n)
	}
}

// pad (analysis, sizes to compile for) → text of the padded graph.
func pad(a *padding.Analysis, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	bound := r.Symbols()
	if r.Err() != nil {
		return r.Err()
	}
	g, err := a.Graph(bound)
	if err == nil {
		w.Text(g.String())
	}
	return err
}

// measure (inputs of a padded graph, true sizes) → the values of those that hold true sizes, in order.
// The error is of kind [ir.ErrName] for an input that holds none.
func measure(_ *wire.Service, r *wire.Request, w *wire.Response) error {
	inputs, sizes := r.Texts(), r.Symbols()
	if r.Err() != nil {
		return r.Err()
	}
	values := make([]int, len(inputs))
	for i, input := range inputs {
		d, is := padded.SizeOf(input)
		if !is {
			return ir.Errorf(ir.ErrName, "input %q is not the name of a size", input)
		}
		var err error
		if values[i], err = d.Bind(sizes); err != nil {
			return err
		}
	}
	writeSizes(w, values)
	return nil
}
