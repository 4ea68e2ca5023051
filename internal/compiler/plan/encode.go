package plan

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// Encode writes a plan file. Equal plans give equal bytes. The plan is
// validated first; the error is a [*FormatError].
//
// A file is a header and sections up to its end, all little endian:
//
//	header   "RLXP"  u16 major  u16 minor  u32 bytes of the file  u32 CRC-32 (IEEE) of all after the header
//	section  4 bytes tag  u32 flags (1 = required)  u32 length  payload, padded with zeros to 4
//
// Within sections a string is u32 length and UTF-8 padded with zeros to 4, a
// list u32 count and items, a u64 two u32 with the low half first. A record,
// marked {} below, is u32 length and fields; a reader steps over fields it does
// not know at the end of a record, and of a section.
//
//	META  string name, compiler, target
//	REQS  list of string features; u64 storage buffers, binding bytes, buffer bytes, shared bytes,
//	      invocations, workgroup x y z, groups; u32 minimum and maximum subgroup size
//	SYMS  list of {string name, u64 value}; optional
//	BUFS  list of {u32 kind, u64 bytes}
//	SLOT  list of {string name, u32 role, string dtype, list of u64 dims, u32 buffer, u64 offset,
//	      u64 bytes, u32 checked, i64 lo, i64 hi}
//	CNST  list of {u32 buffer, u64 offset, u32 length, data}
//	KRNL  list of {string name, string source, u32 workgroup x y z, u32 shared bytes,
//	      list of u32 access, u32 scalar bytes, u32 counters}
//	CODE  u32 length, data; absent without code, known since version 1.2
//	DRFT  list of {u32 kernel, string source}; absent without drafts, known since version 1.3
//	BOXS  list of {u32 kernel, u32 storage array, string dtype, u64 first element, lists of u64 dims,
//	      strides, size}; absent without tensor maps, else required
//	ROUT  list of {string name, list of u64 words}; absent without routines, else required
//	ENTR  list of {string name, list of u32 inputs, scalars, outputs, u32 uniform bytes, steps, and since
//	      version 1.4, where it has any, list of u32 parameters read, parameters set}
//	STAT  u32 buffer, u64 offset, list of {u32 code, string node, string message}; absent without status
//	VARI  a plan file with other requirements; optional, any number of them
//
// Steps are a list of {u32 kind, fields}: 0, dispatch: u32 kernel, u32 groups
// x y z, list of (u32 buffer, u64 offset, u64 bytes), and since version 1.3, for kernels
// with a draft, u32 groups x y z of the draft; 1, copy: u32 source,
// u64 offset, u32 destination, u64 offset, u64 bytes; 2, repeat: u32 count,
// steps; and since version 1.1: 3, alternating repeat: u32 count, steps of even
// iterations, steps of odd ones; 4, indirect dispatch: the fields of a dispatch, u32
// buffer, u64 offset; 5, call, in files with routines: u32 routine, list of (u32
// buffer, u64 offset, u64 bytes); 6, loop of unknown length: u32 buffer, u64 offset,
// steps.
func Encode(p *Plan) ([]byte, error) {
	if err := Validate(p); err != nil {
		return nil, err
	}
	return encode(p)
}

func encode(p *Plan) ([]byte, error) {
	w := &writer{buf: make([]byte, headerBytes, headerBytes+p.sizeHint())}
	w.section(tagMeta, flagRequired, func() { w.str(p.Name); w.str(p.Compiler); w.str(p.Target) })
	w.section(tagRequires, flagRequired, func() { w.requires(&p.Requires) })
	if len(p.Symbols) > 0 {
		w.section(tagSymbols, 0, func() {
			list(w, p.Symbols, func(s *Symbol) { w.str(s.Name); w.u64(s.Value) })
		})
	}
	w.section(tagBuffers, flagRequired, func() {
		list(w, p.Buffers, func(b *Buffer) { w.u32(int(b.Kind)); w.u64(b.Bytes) })
	})
	w.section(tagSlots, flagRequired, func() { list(w, p.Slots, w.slot) })
	w.section(tagConstants, flagRequired, func() {
		list(w, p.Constants, func(c *Constant) { w.u32(c.Buffer); w.u64(c.Offset); w.bytes(c.Data) })
	})
	w.section(tagKernels, flagRequired, func() { list(w, p.Kernels, w.kernel) })
	if p.Code != nil {
		w.section(tagCode, flagRequired, func() { w.bytes(p.Code) })
	}
	if drafted := p.drafted(); len(drafted) > 0 {
		w.section(tagDrafts, 0, func() { list(w, drafted, func(k *int) { w.u32(*k); w.str(p.Kernels[*k].Draft) }) })
	}
	if emit.WithMma {
		if maps := p.tensorMaps(); len(maps) > 0 {
			w.section(tagBoxes, flagRequired, func() { list(w, maps, w.tensorMap) })
		}
	}
	if len(p.Routines) > 0 {
		w.section(tagRoutines, flagRequired, func() { list(w, p.Routines, w.routine) })
	}
	w.section(tagEntries, flagRequired, func() { list(w, p.Entries, w.entry) })
	if s := p.Status; s != nil {
		w.section(tagStatus, flagRequired, func() { w.status(s) })
	}
	for _, v := range p.Variants {
		nested, err := encode(v)
		if err != nil {
			return nil, err
		}
		w.section(tagVariant, 0, func() { w.buf = append(w.buf, nested...) })
	}
	return w.finish()
}

func (w *writer) routine(r *routine.Routine) {
	w.str((*r).Name())
	w.longs((*r).Words())
}

func (w *writer) status(s *Status) {
	w.u32(s.Buffer)
	w.u64(s.Offset)
	list(w, s.Codes, func(c *StatusCode) { w.u32(int(c.Code)); w.str(c.Node); w.str(c.Message) })
}

// sizeHint estimates the size of the encoded slots, constants, sources and steps.
func (p *Plan) sizeHint() int {
	const slot, step = 112, 128 // with a short name, and with five bindings
	n := 4096 + slot*len(p.Slots)
	for i := range p.Constants {
		n += len(p.Constants[i].Data)
	}
	for i := range p.Kernels {
		n += len(p.Kernels[i].Source) + len(p.Kernels[i].Draft) + 64
	}
	for i := range p.Entries {
		n += step * len(p.Entries[i].Steps)
	}
	return n
}

func (w *writer) section(tag string, flags int, body func()) {
	w.buf = append(w.buf, tag...)
	w.u32(flags)
	w.sized(body)
}

func (w *writer) requires(r *Requires) {
	w.u32(len(r.Features))
	for _, f := range r.Features {
		w.str(f)
	}
	for _, n := range limitFields(&r.Limits) {
		w.u64(*n)
	}
	w.u32(r.Subgroup[0])
	w.u32(r.Subgroup[1])
}

// limitFields lists limits in the order of the file.
func limitFields(l *loop.Limits) []*int {
	return []*int{
		&l.StorageBuffers, &l.BindingBytes, &l.BufferBytes, &l.SharedBytes, &l.Invocations,
		&l.Workgroup[0], &l.Workgroup[1], &l.Workgroup[2], &l.Groups,
	}
}

func (w *writer) slot(s *Slot) {
	w.str(s.Name)
	w.u32(int(s.Role))
	w.str(s.DType.String())
	w.longs(s.Dims)
	w.u32(s.Buffer)
	w.u64(s.Offset)
	w.u64(s.Bytes)
	w.flag(s.Checked)
	w.u64(s.Lo)
	w.u64(s.Hi)
}

func (w *writer) kernel(k *Kernel) {
	w.str(k.Name)
	w.str(k.Source)
	w.triple(k.Workgroup)
	w.u32(k.SharedBytes)
	w.u32(len(k.Storage))
	for _, a := range k.Storage {
		w.u32(int(a))
	}
	w.u32(k.ScalarBytes)
	w.u32(k.Counters)
}

// drafted returns the indices of the kernels with drafts.
func (p *Plan) drafted() (out []int) {
	for i := range p.Kernels {
		if p.Kernels[i].Draft != "" {
			out = append(out, i)
		}
	}
	return out
}

// kernelTensorMap is a tensor map with the index of its kernel.
type kernelTensorMap struct {
	kernel int
	TensorMap
}

func (p *Plan) tensorMaps() (out []kernelTensorMap) {
	for i := range p.Kernels {
		for _, b := range p.Kernels[i].TensorMaps {
			out = append(out, kernelTensorMap{i, b})
		}
	}
	return out
}

func (w *writer) tensorMap(b *kernelTensorMap) {
	w.u32(b.kernel)
	w.u32(b.Array)
	w.str(b.DType.String())
	w.u64(b.First)
	w.longs(b.Dims)
	w.longs(b.Strides)
	w.longs(b.Size)
	if c := b.Im2col; emit.WithMma && c != nil {
		for _, corner := range [][]int{c.Lower, c.Upper} {
			w.u32(len(corner))
			for _, n := range corner {
				w.u32(n + cornerBias)
			}
		}
		w.ints(c.Step)
	}
}

// cornerBias makes the corners of pixels, of 16 signed bits, numbers of a file.
const cornerBias = 1 << 15

func (w *writer) entry(e *Entry) {
	w.str(e.Name)
	w.ints(e.Inputs)
	w.ints(e.Scalars)
	w.ints(e.Outputs)
	w.u32(e.UniformBytes)
	w.steps(e.Steps)
	if len(e.Reads)+len(e.Sets) > 0 {
		w.ints(e.Reads)
		w.ints(e.Sets)
	}
}

func (w *writer) steps(steps []Step) {
	list(w, steps, func(s *Step) {
		switch s := (*s).(type) {
		case *Dispatch:
			kind := stepDispatch
			if s.Grid != nil {
				kind = stepIndirect
			}
			w.u32(kind)
			w.u32(s.Kernel)
			w.triple(s.Groups)
			w.bindings(s.Bindings)
			if s.Grid != nil {
				w.cell(*s.Grid)
			}
			if s.DraftGroups != [3]int{} {
				w.triple(s.DraftGroups)
			}
		case *Call:
			w.u32(stepCall)
			w.u32(s.Routine)
			w.bindings(s.Bindings)
		case *Copy:
			w.u32(stepCopy)
			w.u32(s.Src)
			w.u64(s.SrcOffset)
			w.u32(s.Dst)
			w.u64(s.DstOffset)
			w.u64(s.Bytes)
		case *Repeat:
			if len(s.Odd) == 0 {
				w.u32(stepRepeat)
				w.u32(s.Count)
				w.steps(s.Steps)
				return
			}
			w.u32(stepRepeatOdd)
			w.u32(s.Count)
			w.steps(s.Steps)
			w.steps(s.Odd)
		case *While:
			w.u32(stepWhile)
			w.cell(s.Condition)
			w.steps(s.Steps)
		}
	})
}

func (w *writer) cell(c GridAddress) {
	w.u32(c.Buffer)
	w.u64(c.Offset)
}

func (w *writer) bindings(list []Binding) {
	w.u32(len(list))
	for _, b := range list {
		w.u32(b.Buffer)
		w.u64(b.Offset)
		w.u64(b.Bytes)
	}
}

// finish fills in the header.
func (w *writer) finish() ([]byte, error) {
	if uint64(len(w.buf)) > math.MaxUint32 {
		return nil, &FormatError{Kind: ErrInvalid, Rule: 1, Offset: -1, Msg: format.Sprintf("the file would be %d bytes long, the limit is 4 GiB", len(w.buf))}
	}
	h := append(w.buf[:0], magic...)
	h = binary.LittleEndian.AppendUint16(h, Major)
	h = binary.LittleEndian.AppendUint16(h, Minor)
	h = binary.LittleEndian.AppendUint32(h, uint32(len(w.buf)))
	binary.LittleEndian.AppendUint32(h, crc32.ChecksumIEEE(w.buf[headerBytes:]))
	return w.buf, nil
}
