// Package importer is the interface of package onnx to a JavaScript host, apart from the transport of bytes. Models come
// without the elements of large tensors, which the host has in files: those of its own file are external data of the
// path ".". Graphs go in their text form, as the compiler is another module.
//
// Its input are calls of js/src/onnx, its output are texts of graphs and the places of their weights. An import that
// needs elements names them, and is called again when the host has given them. Start reading at importer.go, then
// files.go, the files as far as the host has given them.
package importer

import (
	"errors"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/format/onnx"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// model is a model of the host, and what is known of its files.
type model struct {
	*onnx.Model
	files *files
}

// imported are the weights of a graph.
type imported struct {
	of      *model
	weights []onnx.Weight
}

// New returns a service without any models.
func New() *wire.Service {
	return wire.New(map[string]wire.Method{
		"open": open, "size": wire.On(size), "give": wire.On(give), "import": wire.On(importModel), "weight": wire.On(weight),
	})
}

// open (bytes of a model, size of its file) → model, its inputs and its outputs: name, element type, that of graphs or an
// empty text, has it a shape?, the sizes of its axes.
func open(c *wire.Service, r *wire.Request, w *wire.Response) error {
	data, bytes := slices.Clone(r.Bytes()), r.F64()
	if r.Err() != nil {
		return r.Err()
	}
	decoded, err := onnx.Decode(data)
	if err != nil {
		return typed(err)
	}
	m := &model{Model: decoded, files: &files{sizes: map[string]int64{own: int64(bytes)}, given: map[onnx.Place][]byte{}}}
	w.U32(c.Add(m))
	writeInfos(w, m.Inputs())
	writeInfos(w, m.Outputs())
	return nil
}

func writeInfos(w *wire.Response, list []onnx.Info) {
	w.U32(len(list))
	for _, i := range list {
		d := ""
		if i.Element.DType().Valid() {
			d = i.Element.DType().String()
		}
		w.Text(i.Name)
		w.Text(i.Element.String())
		w.Text(d)
		w.Bool(i.Shape != nil)
		w.U32(len(i.Shape))
		for _, size := range i.Shape {
			w.Text(size.String())
		}
	}
}

// size (model, path of a file, its size) says how long a file is.
func size(m *model, _ *wire.Service, r *wire.Request, _ *wire.Response) error {
	path := r.Text()
	m.files.sizes[path] = int64(r.F64())
	return nil
}

// give (model, path of a file, offset, bytes) gives bytes that were needed.
func give(m *model, _ *wire.Service, r *wire.Request, _ *wire.Response) error {
	p := onnx.Place{File: r.Text(), Offset: int64(r.F64())}
	data := slices.Clone(r.Bytes())
	p.Length = int64(len(data))
	m.files.given[p] = data
	return nil
}

// The answers of an import.
const (
	needsFiles  = 0 // and what is needed of them
	done        = 1
	needsValues = 2 // the inputs one of which must be fixed, and the reason
)

// importModel (model, options) → one of the answers; for one that is done the import, the text of the graph, and its
// weights: name, element type, sizes, and their place or an empty path.
func importModel(m *model, c *wire.Service, r *wire.Request, w *wire.Response) error {
	o := readOptions(r)
	if r.Err() != nil {
		return r.Err()
	}
	o.Files = m.files
	i, err := m.Import(o)
	var places []onnx.Place
	if err == nil {
		places, err = placesOf(i.Weights)
	}
	if m.files.ask(w) {
		return nil
	}
	m.files.forget()
	if need, ok := errors.AsType[*onnx.NeedError](err); ok {
		w.U32(needsValues)
		names := append([]string{need.Value}, need.From...)
		w.U32(len(names))
		for _, name := range names {
			w.Text(name)
		}
		w.Text(typed(err).Error())
		return nil
	}
	if err != nil {
		return typed(err)
	}
	w.U32(done)
	w.U32(c.Add(&imported{m, i.Weights}))
	w.Text(i.Graph.String())
	w.U32(len(i.Weights))
	for k, one := range i.Weights {
		w.Text(one.Name)
		w.ValueType(one.Type)
		writePlace(w, places[k])
	}
	return nil
}

// placesOf returns the places of weights, without a file for those that are not as in a file. With an error, those of the
// others are still looked for, so that all files are named that are needed.
func placesOf(weights []onnx.Weight) (places []onnx.Place, first error) {
	for _, w := range weights {
		p, _, err := w.Place()
		if err != nil && first == nil {
			first = err
		}
		places = append(places, p)
	}
	return places, first
}

// weight (import, number of a weight) → what is needed; or that it is done, and the elements.
func weight(i *imported, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	k := r.U32()
	if k >= len(i.weights) {
		return ir.Errorf(ir.ErrIndex, "there is no weight %d", k)
	}
	data, err := i.weights[k].Bytes()
	if i.of.files.ask(w) {
		return nil
	}
	i.of.files.forget()
	if err != nil {
		return typed(err)
	}
	w.U32(done)
	w.Bytes(data)
	return nil
}

// readOptions reads the options of an import: sizes, shapes, values (name, element type, sizes, elements), frozen?,
// narrow?, the bound on steps, round scales?, bits of activations.
func readOptions(r *wire.Request) onnx.Options {
	o := onnx.Options{Sizes: r.Symbols(), Shapes: map[string]ir.Shape{}, Values: map[string]*ir.Array{}}
	r.List(func() {
		name := r.Text()
		o.Shapes[name] = readShape(r)
	})
	r.List(func() {
		name := r.Text()
		d, err := dtype.Parse(r.Text())
		if err != nil {
			r.Fail(err)
		}
		t := ir.Type{DType: d, Shape: readShape(r)}
		data := r.Bytes()
		if r.Err() != nil {
			return
		}
		if o.Values[name], err = ir.ArrayOf(t, data); err != nil {
			r.Fail(err)
		}
	})
	o.Frozen, o.Narrow, o.MaxSteps, o.RoundScales, o.ActivationBits = r.Bool(), r.Bool(), r.U32(), r.Bool(), r.U32()
	return o
}

func readShape(r *wire.Request) ir.Shape {
	shape := ir.Shape{}
	for _, text := range r.Texts() {
		d, err := ir.ParseDim(text)
		if err != nil {
			r.Fail(err)
		}
		shape = append(shape, d)
	}
	return shape
}

// refused is an error of package onnx as the host gets it.
type refused struct{ error }

// typed gives an error the kind and the op by which the host knows it.
func typed(err error) error { return refused{err} }

// Error has the host's names of options.
func (e refused) Error() string {
	text := strings.ReplaceAll(e.error.Error(), "Options.Sizes", "symbols")
	return strings.ReplaceAll(text, "Options.Shapes", "shapes")
}

// Unwrap returns the error.
func (e refused) Unwrap() error { return e.error }

// Is reports damage as an error of syntax.
func (e refused) Is(kind error) bool {
	return kind == ir.ErrSyntax && errors.Is(e.error, onnx.ErrDamaged)
}

// As finds the op of the node that could not be imported.
func (e refused) As(target any) bool {
	to, is := target.(**ir.OpError)
	node, ok := errors.AsType[*onnx.Error](e.error)
	if !is || !ok {
		return false
	}
	*to = &ir.OpError{Op: ir.Op(node.Op)}
	if inner, ok := errors.AsType[*ir.OpError](node.Reason); ok {
		(*to).In = inner.In
	}
	return true
}
