package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/padding/padded"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
)

// The tags of the sections of a file with open sizes.
const (
	tagOpen   = "OPEN"
	tagBase   = "BASE"
	tagBucket = "SIZE"
)

// EncodeOpen writes a file with open sizes, whose header is that of a plan file ([Encode]). Its sections
// are all required, so that readers of plans refuse it:
//
//	OPEN  string name; list of {string entry, u32 writes, list of string symbols, list of u32 exact,
//	      list of {string input, string dtype, list of string dims},
//	      list of {string output, string dtype, list of {list of string dims} axes},
//	      lists of string sizes that the plan's must not make smaller, that must be valid}
//	BASE  a plan file
//	SIZE  u32 entry, list of u64 sizes of its symbols, u32 length, plan file; any number of them
//
// The error is a [*FormatError].
func EncodeOpen(o *Open) ([]byte, error) {
	base, err := Encode(o.Base)
	if err != nil {
		return nil, err
	}
	w := &writer{buf: make([]byte, headerBytes)}
	w.section(tagOpen, flagRequired, func() { w.str(o.Name); list(w, o.Entries, w.openEntry) })
	w.section(tagBase, flagRequired, func() { w.buf = append(w.buf, base...) })
	for i := range o.Buckets {
		b := &o.Buckets[i]
		file, err := Encode(b.Plan)
		if err != nil {
			return nil, err
		}
		w.section(tagBucket, flagRequired, func() {
			w.u32(b.Entry)
			w.longs(b.Sizes)
			w.bytes(file)
		})
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	return w.finish()
}

func (w *writer) openEntry(e *OpenEntry) {
	w.str(e.Name)
	w.flag(e.Writes)
	w.u32(len(e.Symbols))
	for _, s := range e.Symbols {
		w.str(s)
	}
	w.u32(len(e.Exact))
	for _, exact := range e.Exact {
		w.flag(exact)
	}
	list(w, e.Inputs, func(x *OpenInput) { w.str(x.Name); w.str(x.DType.String()); w.dims(x.Shape) })
	list(w, e.Outputs, func(y *padded.Output) {
		w.str(y.Name)
		w.str(y.DType.String())
		list(w, y.Axes, func(e *ir.Extent) { w.dims(*e) })
	})
	w.dims(e.Sizes)
	w.dims(e.Least)
}

func (w *writer) dims(dims []ir.Dim) {
	w.u32(len(dims))
	for _, d := range dims {
		w.str(d.String())
	}
}

// IsOpen reports whether a plan file has open sizes: [DecodeOpen] then reads it.
func IsOpen(b []byte) bool {
	return len(b) >= headerBytes+4 && string(b[:4]) == magic && string(b[headerBytes:headerBytes+4]) == tagOpen
}

// DecodeOpen reads a file with open sizes and validates its plans, as [Decode] does. The files of its
// buckets are slices of b.
func DecodeOpen(b []byte) (*Open, error) {
	minor, err := checkHeader(b)
	if err != nil {
		return nil, err
	}
	o := &Open{}
	readers := map[string]func(*reader){
		tagOpen: func(r *reader) {
			o.Name = r.str()
			o.Entries = items(r, r.openEntry)
		},
		tagBase: func(r *reader) {
			o.BaseFile = r.take(r.end - r.off)
			o.Base = r.nested(o.BaseFile)
		},
		tagBucket: func(r *reader) {
			b := Bucket{Entry: r.u32(), Sizes: numbers(r, 8, r.u64)}
			b.File = r.take(r.u32())
			b.Plan = r.nested(b.File)
			o.Buckets = append(o.Buckets, b)
		},
	}
	err = eachSection(b, minor, []string{tagOpen, tagBase}, func(tag string) (read func(*reader), several bool) {
		return readers[tag], tag == tagBucket
	})
	if err != nil {
		return nil, err
	}
	return o, o.validate()
}

// nested reads a plan file in a file. Offsets in its errors are relative to its start.
func (r *reader) nested(file []byte) *Plan {
	if r.err != nil {
		return nil
	}
	p, err := Decode(file)
	if err != nil {
		r.err = err
	}
	return p
}

func (r *reader) openEntry(e *OpenEntry) {
	e.Name = r.str()
	e.Writes = r.flag()
	for range r.count(4) {
		e.Symbols = append(e.Symbols, r.str())
	}
	for range r.count(4) {
		e.Exact = append(e.Exact, r.flag())
	}
	e.Inputs = items(r, func(x *OpenInput) { x.Name, x.DType, x.Shape = r.str(), r.dtype(), r.dims() })
	e.Outputs = items(r, func(y *padded.Output) {
		y.Name, y.DType = r.str(), r.dtype()
		y.Axes = items(r, func(e *ir.Extent) { *e = r.dims() })
	})
	e.Sizes, e.Least = r.dims(), r.dims()
}

func (r *reader) dims() []ir.Dim {
	var out []ir.Dim
	for range r.count(4) {
		text := r.str()
		d, err := ir.ParseDim(text)
		if r.err == nil && (err != nil || d.String() != text) {
			r.fail(46, "%q is not the normal form of a size", text)
		}
		out = append(out, d)
	}
	return out
}

// validate checks rules 46 to 48.
func (o *Open) validate() error {
	invalid := func(rule int, part, text string, args ...any) error {
		return &FormatError{Kind: ErrInvalid, Rule: rule, Offset: -1, Section: part, Msg: format.Sprintf(text, args...)}
	}
	names := map[string]bool{}
	for _, e := range o.Base.Entries {
		names[e.Name] = true
	}
	for i := range o.Entries {
		e := &o.Entries[i]
		if part := "entry " + e.Name; names[e.Name] || e.Name == "" {
			return invalid(46, part, "the name is empty, or an earlier entry has it")
		} else if text := e.fault(); text != "" {
			return invalid(46, part, "%s", text)
		}
		names[e.Name] = true
	}
	seen := map[string]bool{}
	for i := range o.Buckets {
		b, part := &o.Buckets[i], format.Sprintf("bucket %d", i)
		if b.Entry >= len(o.Entries) {
			return invalid(47, part, "entry %d of %d", b.Entry, len(o.Entries))
		}
		for _, p := range b.Plan.All() {
			if text := o.Entries[b.Entry].mismatch(b, p); text != "" {
				return invalid(47, part, "%s", text)
			}
			if !o.shares(p) {
				return invalid(48, part, "its parameters and states for %s are not those of the base", p.Target)
			}
		}
		key := format.Sprintf("%d %v", b.Entry, b.Sizes)
		if seen[key] {
			return invalid(47, part, "another bucket has its sizes")
		}
		seen[key] = true
	}
	return nil
}

// fault describes what breaks rule 46 in an entry, "" for nothing.
func (e *OpenEntry) fault() string {
	if len(e.Symbols) == 0 || len(e.Exact) != len(e.Symbols) {
		return format.Sprintf("%d symbols, %d of which are exact or not", len(e.Symbols), len(e.Exact))
	}
	var dims []ir.Dim
	for i, x := range e.Inputs {
		if slices.ContainsFunc(e.Inputs[:i], func(y OpenInput) bool { return x.Name == y.Name }) {
			return format.Sprintf("two inputs are named %q", x.Name)
		}
		dims = append(dims, x.Shape...)
	}
	for i, s := range e.Symbols {
		if i > 0 && s <= e.Symbols[i-1] || !slices.Contains(dims, ir.Sym(s)) {
			return format.Sprintf("symbol %q is out of order, or no axis of an input", s)
		}
	}
	dims = slices.Concat(dims, e.Sizes, e.Least)
	for _, y := range e.Outputs {
		for _, axis := range y.Axes {
			dims = append(dims, axis...)
		}
	}
	for _, d := range dims {
		for _, s := range d.Symbols() {
			if !slices.Contains(e.Symbols, s) {
				return format.Sprintf("size %s has a symbol that the entry lacks", d)
			}
		}
	}
	return ""
}

// mismatch describes what breaks rule 47 in a plan of a bucket, "" for nothing.
func (e *OpenEntry) mismatch(b *Bucket, p *Plan) string {
	if len(b.Sizes) != len(e.Symbols) {
		return format.Sprintf("%d sizes of %d symbols", len(b.Sizes), len(e.Symbols))
	}
	bound, entry := e.Bound(b), p.Entry(e.Name)
	if entry == nil {
		return format.Sprintf("the plan has no entry %q", e.Name)
	}
	inputs, outputs := p.SlotsOf(entry)
	for _, s := range inputs {
		if !e.accepts(s, bound) {
			return format.Sprintf("input %q is %s%v", s.Name, s.DType, s.Dims)
		}
	}
	crops, err := e.Crops(bound, bound)
	if err != nil {
		return err.Error()
	}
	for _, s := range outputs {
		c := slices.IndexFunc(crops, func(c padded.Crop) bool { return c.Name == s.Name })
		if !s.Role.Persistent() && (c < 0 || s.DType != e.Outputs[c].DType || !slices.Equal(s.Dims, crops[c].Dims)) {
			return format.Sprintf("output %q is %s%v", s.Name, s.DType, s.Dims)
		}
	}
	return ""
}

// accepts reports whether a slot is an input of the entry at its bound size, or a true size.
func (e *OpenEntry) accepts(s *Slot, bound map[string]int) bool {
	if d, is := padded.SizeOf(s.Name); is {
		_, err := d.Bind(bound)
		return err == nil && s.DType == dtype.I32 && len(s.Dims) == 0
	}
	i := slices.IndexFunc(e.Inputs, func(x OpenInput) bool { return x.Name == s.Name })
	if i < 0 || s.DType != e.Inputs[i].DType || len(s.Dims) != len(e.Inputs[i].Shape) {
		return false
	}
	for axis, d := range e.Inputs[i].Shape {
		if n, err := d.Bind(bound); err != nil || n != s.Dims[axis] {
			return false
		}
	}
	return true
}

// shares reports whether the base has the parameters and states of a plan at the same places, for the
// same target.
func (o *Open) shares(p *Plan) bool {
	return slices.ContainsFunc(o.Base.All(), func(base *Plan) bool {
		x, y := LayoutOf(base), LayoutOf(p)
		if base.Target != p.Target || !slices.Equal(x.Buffers, y.Buffers) || len(x.Places) != len(y.Places) {
			return false
		}
		for _, place := range x.Places {
			s, t := base.Lookup(place.Name), p.Lookup(place.Name)
			if !slices.Contains(y.Places, place) || t == nil || s.DType != t.DType || !slices.Equal(s.Dims, t.Dims) || s.Role != t.Role {
				return false
			}
		}
		return true
	})
}
