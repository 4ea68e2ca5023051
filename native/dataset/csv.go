package dataset

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Column is a tensor that [ReadCSV] makes of fields.
type Column struct {
	// Name is the name of the tensor.
	Name string
	// Fields are the names of the fields in the first line or, without such a line, their numbers
	// from 0: "0", "1". A tensor of one field is [rows], of several [rows, fields].
	Fields []string
	// Classes, if not nil, are the values of the one field in order: the tensor is i32 and has their
	// indices. Other values are an error.
	Classes []string
	// DType is the element type without Classes, [ir.F32] or [ir.I32]; the zero DType is F32.
	DType ir.DType
	// Missing are the texts of fields without a value, as "" and "NA": they become NaN, which stats.NanMean and its like
	// leave out, or −1 in i32.
	Missing []string
}

// CSVOptions are the options of [ReadCSV].
type CSVOptions struct {
	Columns []Column
	// Comma separates fields; 0 means a comma.
	Comma rune
	// Header means that the first line has the names of the fields.
	Header bool
}

// byteOrderMark begins the UTF-8 files of spreadsheets.
const byteOrderMark = "\ufeff"

// ReadCSV reads lines of fields (RFC 4180) into tensors. The error is of kind [ErrDamaged] for a line
// with another number of fields than the first one and for a field that is not a number or out of the range of its type, with its line; [ir.ErrName] for
// an unknown field and for one that two fields could be, and [ir.ErrAttr] for options that are incomplete or a Comma that separates
// nothing; others are those of r.
func ReadCSV(r io.Reader, o CSVOptions) (map[string]native.Tensor, error) {
	if r == nil {
		return nil, ir.Attrf("r is nil: it must be a reader")
	}
	text := bufio.NewReader(r)
	if mark, err := text.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = text.Discard(len(byteOrderMark)) // of bytes that are there
	}
	in := csv.NewReader(text)
	in.ReuseRecord, in.FieldsPerRecord = true, 0 // as the first line has
	switch {
	case o.Comma == '"' || o.Comma == '\r' || o.Comma == '\n' || o.Comma == utf8.RuneError || o.Comma != 0 && !utf8.ValidRune(o.Comma):
		return nil, ir.Attrf("the comma is %q: it must separate fields, and not be a quote or the end of a line", o.Comma)
	case o.Comma != 0:
		in.Comma = o.Comma
	}
	var header []string
	if o.Header {
		first, err := in.Read()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, lineError(err)
		}
		header = slices.Clone(first)
	}
	columns, err := columnsOf(o, header)
	if err != nil {
		return nil, err
	}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, csv.ErrFieldCount) {
			line, _ := in.FieldPos(0)
			return nil, damagedf("line %d has %d fields: it must have as many as the first line", line, len(fields))
		}
		if err != nil {
			return nil, lineError(err)
		}
		line, _ := in.FieldPos(0)
		for _, c := range columns {
			if err := c.add(fields, line); err != nil {
				return nil, err
			}
		}
	}
	out := map[string]native.Tensor{}
	for _, c := range columns {
		out[c.Name] = c.tensor()
	}
	return out, nil
}

// lineError returns an error of a line: damage, or what the reader says.
func lineError(err error) error {
	if syntax := (*csv.ParseError)(nil); errors.As(err, &syntax) {
		return damagedf("%v", err)
	}
	return err
}

// column collects the elements of a tensor.
type column struct {
	Column
	at     []int // the numbers of the fields
	floats []float32
	ints   []int32
}

func columnsOf(o CSVOptions, header []string) ([]*column, error) {
	if len(o.Columns) == 0 {
		return nil, ir.Attrf("no columns given")
	}
	var out []*column
	for _, c := range o.Columns {
		if c.DType == 0 {
			c.DType = ir.F32
		}
		if c.Classes != nil {
			c.DType = ir.I32
		}
		if c.Name == "" || len(c.Fields) == 0 || c.Classes != nil && len(c.Fields) != 1 || c.DType != ir.F32 && c.DType != ir.I32 {
			return nil, ir.Attrf("column %q is %s of the fields %q: it must have a name, f32 or i32, and one field with classes, else one or more", c.Name, c.DType, c.Fields)
		}
		if slices.ContainsFunc(out, func(other *column) bool { return other.Name == c.Name }) {
			return nil, ir.Attrf("two columns have the name %q: each tensor must have its own", c.Name)
		}
		x := &column{Column: c}
		for _, f := range c.Fields {
			at := slices.Index(header, f)
			if header == nil {
				n, err := strconv.ParseUint(f, 10, 16)
				if at = int(n); err != nil {
					at = -1
				}
			}
			if at < 0 && header == nil {
				return nil, ir.Errorf(ir.ErrName, "column %q: field %q: without Header it must be a number from 0", c.Name, f)
			}
			if at < 0 {
				return nil, ir.Errorf(ir.ErrName, "column %q: unknown field %q: have %q", c.Name, f, header)
			}
			if header != nil && slices.Contains(header[at+1:], f) {
				return nil, ir.Errorf(ir.ErrName, "column %q: two fields are named %q: have %q", c.Name, f, header)
			}
			x.at = append(x.at, at)
		}
		out = append(out, x)
	}
	return out, nil
}

// add adds the fields of a line.
func (c *column) add(fields []string, line int) error {
	for i, at := range c.at {
		if at >= len(fields) {
			return damagedf("line %d has %d fields: column %q needs field %d", line, len(fields), c.Name, at)
		}
		text := strings.TrimSpace(fields[at])
		switch {
		case slices.Contains(c.Missing, text):
			if c.DType == ir.I32 {
				c.ints = append(c.ints, -1)
			} else {
				c.floats = append(c.floats, float32(math.NaN()))
			}
		case c.Classes != nil:
			class := slices.Index(c.Classes, text)
			if class < 0 {
				return damagedf("line %d: %q is no class of column %q, which has %q", line, text, c.Name, c.Classes)
			}
			c.ints = append(c.ints, int32(class))
		case c.DType == ir.I32:
			n, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return damagedf("line %d: %q of field %q, column %q, is not an i32", line, text, c.Fields[i], c.Name)
			}
			c.ints = append(c.ints, int32(n))
		default:
			x, err := strconv.ParseFloat(text, 32)
			if errors.Is(err, strconv.ErrRange) {
				return damagedf("line %d: %q of field %q, column %q, is out of the range of f32", line, text, c.Fields[i], c.Name)
			}
			if err != nil {
				return damagedf("line %d: %q of field %q, column %q, is not a number: Missing names texts without a value", line, text, c.Fields[i], c.Name)
			}
			c.floats = append(c.floats, float32(x))
		}
	}
	return nil
}

func (c *column) tensor() native.Tensor {
	n := len(c.floats) + len(c.ints)
	dims := []int{n / len(c.at)}
	if len(c.at) > 1 {
		dims = append(dims, len(c.at))
	}
	if c.DType == ir.I32 {
		return native.Int32s(c.ints, dims...)
	}
	return native.Float32s(c.floats, dims...)
}
