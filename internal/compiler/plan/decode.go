package plan

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// Decode reads a plan file and validates the plan. The data of constants are
// slices of b. Every error is a [*FormatError]. For any input Decode neither panics nor
// allocates more than a small multiple of its length.
func Decode(b []byte) (*Plan, error) {
	minor, err := checkHeader(b)
	if err != nil {
		return nil, err
	}
	p, err := decodeSections(b, minor, true)
	if err != nil {
		return nil, err
	}
	if err := Validate(p); err != nil {
		return nil, err
	}
	return p, nil
}

// checkHeader checks the header and checksum of a file and returns its minor version.
func checkHeader(b []byte) (minor int, err error) {
	damaged := func(offset int, text string, args ...any) error {
		return &FormatError{Kind: ErrDamaged, Rule: 1, Offset: offset, Msg: format.Sprintf(text, args...)}
	}
	if len(b) < 4 || string(b[:4]) != magic {
		return 0, damaged(0, "not a plan: it does not begin with %q", magic)
	}
	if len(b) < headerBytes {
		return 0, damaged(len(b), "the file is cut short in its header")
	}
	if major := int(binary.LittleEndian.Uint16(b[4:])); major != Major {
		return 0, &FormatError{Kind: ErrVersion, Rule: 2, Offset: 4, Msg: format.Sprintf("the file has major version %d, this reader reads %d", major, Major)}
	}
	if n := int(binary.LittleEndian.Uint32(b[8:])); n != len(b) {
		return 0, damaged(8, "the file is %d bytes long but says %d", len(b), n)
	}
	if crc32.ChecksumIEEE(b[headerBytes:]) != binary.LittleEndian.Uint32(b[12:]) {
		return 0, damaged(12, "the checksum is wrong")
	}
	return int(binary.LittleEndian.Uint16(b[6:])), nil
}

// sections returns the readers of the known sections. Those in mandatory must occur
// exactly once. It is a function rather than a variable so that a program that reads no
// plans, such as the compiler in a page, does not link them.
func sections() map[string]func(*reader, *Plan) {
	return map[string]func(*reader, *Plan){
		tagMeta:     func(r *reader, p *Plan) { p.Name, p.Compiler, p.Target = r.str(), r.str(), r.str() },
		tagRequires: func(r *reader, p *Plan) { p.Requires = r.requires() },
		tagSymbols: func(r *reader, p *Plan) {
			p.Symbols = items(r, func(s *Symbol) { s.Name, s.Value = r.str(), r.u64() })
		},
		tagBuffers: func(r *reader, p *Plan) {
			p.Buffers = items(r, func(b *Buffer) { b.Kind, b.Bytes = BufferKind(r.enum(int(bufferKinds), "buffer kind")), r.u64() })
		},
		tagSlots: func(r *reader, p *Plan) { p.Slots = items(r, r.slot) },
		tagConstants: func(r *reader, p *Plan) {
			p.Constants = items(r, func(c *Constant) { c.Buffer, c.Offset, c.Data = r.u32(), r.u64(), r.take(r.u32()) })
		},
		tagKernels: func(r *reader, p *Plan) { p.Kernels = items(r, r.kernel) },
		tagDrafts: func(r *reader, p *Plan) {
			for _, d := range items(r, func(d *draft) { d.kernel, d.source = r.u32(), r.str() }) {
				if d.kernel >= len(p.Kernels) {
					r.fail(44, "a draft of kernel %d, of which there are %d", d.kernel, len(p.Kernels))
					return
				}
				p.Kernels[d.kernel].Draft = d.source
			}
		},
		tagBoxes: func(r *reader, p *Plan) {
			for _, b := range items(r, r.tensorMap) {
				if b.kernel >= len(p.Kernels) {
					r.fail(43, "a tensor map of kernel %d, of which there are %d", b.kernel, len(p.Kernels))
					return
				}
				k := &p.Kernels[b.kernel]
				k.TensorMaps = append(k.TensorMaps, b.TensorMap)
			}
		},
		tagRoutines: func(r *reader, p *Plan) { p.Routines = items(r, r.routine) },
		tagCode:     func(r *reader, p *Plan) { p.Code = r.take(r.u32()) },
		tagEntries: func(r *reader, p *Plan) {
			r.calls = len(p.Routines) > 0
			p.Entries = items(r, r.entry)
		},
		tagStatus: func(r *reader, p *Plan) {
			p.Status = &Status{Buffer: r.u32(), Offset: r.u64()}
			p.Status.Codes = items(r, func(c *StatusCode) { c.Code, c.Node, c.Message = uint32(r.u32()), r.str(), r.str() })
		},
	}
}

var mandatory = []string{tagMeta, tagRequires, tagBuffers, tagSlots, tagConstants, tagKernels, tagEntries}

// decodeSections reads the sections of a file whose header was checked.
func decodeSections(b []byte, minor int, variants bool) (*Plan, error) {
	p, readers := new(Plan), sections()
	variant := func(r *reader) {
		v, err := decodeVariant(r.take(r.end - r.off))
		if err != nil {
			r.err = err
			return
		}
		p.Variants = append(p.Variants, v)
	}
	return p, eachSection(b, minor, mandatory, func(tag string) (read func(*reader), several bool) {
		if tag == tagVariant && variants {
			return variant, true
		}
		if of, known := readers[tag]; known {
			read = func(r *reader) { of(r, p) }
		}
		return read, false
	})
}

// eachSection reads the sections of a file whose header was checked. known returns the reader of a section, nil for
// an unknown one, and whether there may be several. Those in required must occur.
func eachSection(b []byte, minor int, required []string, known func(tag string) (read func(*reader), several bool)) error {
	r := &reader{buf: b, off: headerBytes, end: len(b), newer: minor > Minor}
	seen := map[string]bool{}
	for r.err == nil && r.off < len(b) {
		start := r.off
		r.section = ""
		tag, flags, length := string(r.take(4)), r.u32(), r.u32()
		r.section = tag
		body := r.off
		r.ensure(length)
		r.skip(length + -length&3)
		if r.err != nil {
			break
		}
		read, several := known(tag)
		switch {
		case read != nil && seen[tag] && !several:
			r.failAt(start, ErrDamaged, 7, "the section is there twice")
		case read != nil:
			seen[tag] = true
			inner := &reader{buf: b, off: body, end: body + length, newer: r.newer, section: tag}
			read(inner)
			inner.finish()
			r.err = inner.err
		case flags&flagRequired != 0:
			r.failAt(start, ErrVersion, 8, "section %q is required and not known to this reader", tag)
		}
	}
	for _, tag := range required {
		if !seen[tag] && r.err == nil {
			r.section = tag
			r.failAt(len(b), ErrDamaged, 7, "the section is missing")
		}
	}
	return r.err
}

// decodeVariant reads a nested plan. Offsets in its errors are relative to its start.
func decodeVariant(b []byte) (*Plan, error) {
	minor, err := checkHeader(b)
	if err != nil {
		return nil, err
	}
	return decodeSections(b, minor, false)
}

func (r *reader) requires() (q Requires) {
	for range r.count(4) {
		q.Features = append(q.Features, r.str())
	}
	for _, n := range limitFields(&q.Limits) {
		*n = r.u64()
	}
	q.Subgroup = [2]int{r.u32(), r.u32()}
	return q
}

func (r *reader) slot(s *Slot) {
	s.Name = r.str()
	s.Role = Role(r.enum(int(roles), "role"))
	s.DType = r.dtype()
	s.Dims = numbers(r, 8, r.u64)
	s.Buffer, s.Offset, s.Bytes = r.u32(), r.u64(), r.u64()
	s.Checked = r.flag()
	s.Lo, s.Hi = r.i64(), r.i64()
}

func (r *reader) kernel(k *Kernel) {
	k.Name, k.Source = r.str(), r.str()
	k.Workgroup = r.triple()
	k.SharedBytes = r.u32()
	for range r.count(4) {
		k.Storage = append(k.Storage, loop.Access(r.enum(accesses, "access")))
	}
	k.ScalarBytes, k.Counters = r.u32(), r.u32()
}

// draft is the source of a draft with the index of its kernel.
type draft struct {
	kernel int
	source string
}

func (r *reader) tensorMap(b *kernelTensorMap) {
	b.kernel, b.Array = r.u32(), r.u32()
	b.DType = r.dtype()
	b.First = r.u64()
	b.Dims, b.Strides, b.Size = numbers(r, 8, r.u64), numbers(r, 8, r.u64), numbers(r, 8, r.u64)
	if emit.WithMma && r.off < r.end {
		corner := func() int { return r.u32() - cornerBias }
		b.Im2col = &loop.Im2col{Lower: numbers(r, 4, corner), Upper: numbers(r, 4, corner), Step: numbers(r, 4, r.u32)}
	}
}

func (r *reader) dtype() dtype.DType {
	name := r.str()
	d, err := dtype.Parse(name)
	if err != nil {
		r.fail(6, "unknown dtype %q", name)
	}
	return d
}

func (r *reader) routine(to *routine.Routine) {
	at, name := r.off, r.str()
	words := numbers(r, 8, r.u64)
	if r.err != nil {
		return
	}
	made, err := routine.Of(name, words)
	if err != nil {
		r.failAt(at, ErrVersion, 8, "a routine that is not known to this reader: %v", err)
		return
	}
	*to = made
}

func (r *reader) entry(e *Entry) {
	e.Name = r.str()
	e.Inputs, e.Scalars, e.Outputs = numbers(r, 4, r.u32), numbers(r, 4, r.u32), numbers(r, 4, r.u32)
	e.UniformBytes = r.u32()
	e.Steps = r.steps(0)
	if r.off < r.end {
		e.Reads, e.Sets = numbers(r, 4, r.u32), numbers(r, 4, r.u32)
	}
}

func (r *reader) steps(depth int) []Step {
	if depth > MaxCounters {
		r.failAt(r.off, ErrInvalid, 39, "repeats are nested more than %d deep", MaxCounters)
		return nil
	}
	return items(r, func(s *Step) {
		switch kind := r.u32(); kind {
		case stepDispatch:
			d := r.dispatch()
			if r.off < r.end {
				d.DraftGroups = r.triple()
			}
			*s = d
		case stepIndirect:
			d := r.dispatch()
			at := r.cell()
			d.Grid = &at
			*s = d
		case stepCopy:
			*s = &Copy{Src: r.u32(), SrcOffset: r.u64(), Dst: r.u32(), DstOffset: r.u64(), Bytes: r.u64()}
		case stepRepeat:
			*s = &Repeat{Count: r.u32(), Steps: r.steps(depth + 1)}
		case stepRepeatOdd:
			*s = &Repeat{Count: r.u32(), Steps: r.steps(depth + 1), Odd: r.steps(depth + 1)}
		case stepWhile:
			*s = &While{Condition: r.cell(), Steps: r.steps(depth + 1)}
		default:
			if kind == stepCall && r.calls {
				*s = &Call{Routine: r.u32(), Bindings: r.bindings()}
				return
			}
			r.failAt(r.off-4, ErrVersion, 8, "a step of kind %d is not known to this reader", kind)
		}
	})
}

func (r *reader) cell() GridAddress { return GridAddress{Buffer: r.u32(), Offset: r.u64()} }

func (r *reader) dispatch() *Dispatch {
	return &Dispatch{Kernel: r.u32(), Groups: r.triple(), Bindings: r.bindings()}
}

func (r *reader) bindings() []Binding {
	n := r.count(20)
	if n == 0 {
		return nil
	}
	out := make([]Binding, n)
	for i := range out {
		out[i] = Binding{Buffer: r.u32(), Offset: r.u64(), Bytes: r.u64()}
	}
	return out
}
