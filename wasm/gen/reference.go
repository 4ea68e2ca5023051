package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// opReference is what the reference says of an op.
type opReference struct {
	Op          string   `json:"op"`
	Method      string   `json:"method,omitempty"`
	Doc         string   `json:"doc"`
	Constraints []string `json:"constraints,omitempty"`
	Defaults    []string `json:"defaults,omitempty"`
	Example     *example `json:"example,omitempty"`
}

// example is a program that calls an op, and the results it prints.
type example struct {
	Call    string   `json:"call"`
	Code    string   `json:"code"`
	Results []result `json:"results"`
}

// result is one result of an example; numbers that JSON lacks are the strings NaN, Infinity and -Infinity.
type result struct {
	Type   string `json:"type"`
	Values []any  `json:"values"`
}

// reference returns the reference of all ops as JSON, sorted by name.
func reference() ([]byte, error) {
	var entries []opReference
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if op == ir.OpPort || op == ir.OpConstant {
			continue
		}
		e := opReference{Op: string(op), Doc: d.Doc, Constraints: d.Constraints}
		for _, a := range attributesOf(d) {
			if a.byDefault != "" {
				e.Defaults = append(e.Defaults, "`"+camel(a.name)+"` is "+a.byDefault)
			}
		}
		if !builtByHand(d) {
			e.Method = signature(d)
			var err error
			if e.Example, err = exampleOf(d); err != nil {
				return nil, fmt.Errorf("%s: %w", op, err)
			}
		}
		entries = append(entries, e)
	}
	return json.Marshal(entries)
}

// signature returns how TypeScript calls an op: a method of its first operand, or of the builder b.
func signature(d *ir.Def) string {
	m := methodOf(d)
	on := "b"
	if !onTheBuilder(d) {
		on = camel(d.Operands[0])
	}
	text := fmt.Sprintf("%s.%s(%s): %s", on, m.name, strings.Join(m.params, ", "), m.result)
	return strings.NewReplacer("readonly OperandOf<V>[]", "readonly (Value | number)[]", "OperandOf<V>", "Value | number", "<V>", "<Value>", "V[]", "Value[]", "[V", "[Value", ", V", ", Value", ": V", ": Value").Replace(text)
}

// maxElements bounds the elements of an operand or a result of an example.
const maxElements = 48

// exampleOf returns an example of an op: the sample of it that is nearest to a size that reads well. Nil
// where each has an operand or a result that is large, empty, or of a type that TypeScript lacks.
func exampleOf(d *ir.Def) (*example, error) {
	var best *example
	least := math.MaxInt
	for _, s := range d.Samples() {
		distance := distanceOf(s.In) + likeness(d, s)
		if slices.ContainsFunc(s.In, unfit) || distance >= least {
			continue
		}
		made, err := exampleFrom(d, s)
		if err != nil {
			return nil, err
		}
		if made != nil {
			best, least = made, distance
		}
	}
	return best, nil
}

// distanceOf ranks a sample by how well its operands read: few elements, f32.
func distanceOf(in []*ir.Array) int {
	distance := 0
	for _, a := range in {
		if a == nil {
			continue
		}
		n := a.Len() - 6
		distance += max(n, -3*n)
		if a.DType != ir.F32 {
			distance += 4
		}
		for i := range a.F {
			if math.IsInf(a.F[i], 0) || math.IsNaN(a.F[i]) {
				distance += 20
			}
		}
	}
	return distance
}

// likeness describes how far a sample is from how the op is called: of a list of operands with several, and
// with axes where it takes some.
func likeness(d *ir.Def, s ir.Sample) int {
	distance := 0
	if n := len(d.Operands); n > 0 && isList(d.Operands[n-1]) && len(s.In) < n+1 {
		distance += 20
	}
	if s.Attrs != nil && strings.Contains(ir.FormatAttrs(s.Attrs), "axes=[]") {
		distance += 20
	}
	return distance
}

// arrayClasses are the classes of typed arrays that hold the elements of types in examples.
var arrayClasses = map[ir.DType]string{
	ir.F32: "Float32Array", ir.I32: "Int32Array", ir.U32: "Uint32Array", ir.Bool: "Uint8Array",
	ir.U8: "Uint8Array", ir.I8: "Int8Array",
}

func unfit(a *ir.Array) bool {
	return a == nil || arrayClasses[a.DType] == "" || a.Len() == 0 || a.Len() > maxElements
}

// exampleFrom returns the example of one sample, or nil where a result does not fit. Samples that the op
// refuses have none.
func exampleFrom(d *ir.Def, s ir.Sample) (*example, error) {
	inputs := map[string]*ir.Array{}
	g, err := ir.Build(string(d.Op), func(b *ir.Builder) {
		var in []ir.Value
		for i, a := range s.In {
			name := operandName(d, i)
			inputs[name] = a
			in = append(in, b.Port(ir.InputPort, name, a.Type()))
		}
		for i, v := range b.AddNode(d.Op, s.Attrs, s.Subs, in...) {
			b.Output("y"+strconv.Itoa(i), v)
		}
	})
	if err != nil {
		return nil, nil //nolint:nilerr // a sample of what is refused
	}
	out, err := ir.Eval(g, inputs, ir.EvalOptions{})
	if err != nil || slices.ContainsFunc(out, unfit) {
		return nil, err
	}
	e := &example{Call: callOf(d, s)}
	e.Code = program(d, s, e.Call, len(out))
	for _, a := range out {
		e.Results = append(e.Results, result{Type: a.Type().String(), Values: valuesOf(a)})
	}
	return e, nil
}

// operandName returns the name of operand i in an example.
func operandName(d *ir.Def, i int) string {
	last := len(d.Operands) - 1
	if i < last || !isList(d.Operands[last]) {
		return camel(d.Operands[i])
	}
	return camel(strings.TrimSuffix(d.Operands[last], "...")) + strconv.Itoa(i-last)
}

// builderName returns a name for the builder that no operand has.
func builderName(d *ir.Def) string {
	if slices.Contains(d.Operands, "b") {
		return "builder"
	}
	return "b"
}

// callOf returns the call of an op as a sample has it.
func callOf(d *ir.Def, s ir.Sample) string {
	var args, list []string
	on := builderName(d)
	for i := range s.In {
		name := operandName(d, i)
		switch {
		case i == 0 && !onTheBuilder(d):
			on = name
		case i >= len(d.Operands)-1 && isList(d.Operands[len(d.Operands)-1]):
			list = append(list, name)
		default:
			args = append(args, name)
		}
	}
	if len(d.Operands) > 0 && isList(d.Operands[len(d.Operands)-1]) {
		args = append(args, "["+strings.Join(list, ", ")+"]")
	}
	if attrs := attributesFor(d, s); attrs != "" {
		for i := len(s.In); i < len(d.Operands) && !isList(d.Operands[i]); i++ {
			args = append(args, "undefined") // an operand that is left out
		}
		args = append(args, attrs)
	}
	return fmt.Sprintf("%s.%s(%s)", on, camel(string(d.Op)), strings.Join(args, ", "))
}

// attributesFor returns the attributes of a sample as arguments, without those that equal their
// defaults.
func attributesFor(d *ir.Def, s ir.Sample) string {
	list := attributesOf(d)
	if s.Attrs == nil || len(list) == 0 {
		return ""
	}
	given := &recorder{fields: map[string]any{}}
	s.Attrs.Visit(given)
	var texts, fields []string
	for _, a := range list {
		value, ok := given.fields[a.name]
		if !ok || !a.required && literal(value) == literal(defaultOf(d, s, a.name)) {
			continue
		}
		texts = append(texts, literal(value))
		fields = append(fields, camel(a.name)+": "+literal(value))
	}
	if len(fields) == 0 {
		return ""
	}
	if len(list) == 1 || len(list) == 2 && d.Reduces != nil {
		return texts[0]
	}
	return "{ " + strings.Join(fields, ", ") + " }"
}

// defaultOf returns the default of an attribute of a sample, given the others.
func defaultOf(d *ir.Def, s ir.Sample, name string) any {
	found := &recorder{fields: map[string]any{}}
	without(d, s, name).Visit(found)
	return found.fields[name]
}

// literal returns a value of an attribute as JavaScript has it.
func literal(value any) string {
	switch v := value.(type) {
	case string:
		return "'" + v + "'"
	case ir.DType:
		return "'" + v.String() + "'"
	case float64:
		return number(v, 64)
	case []int:
		return listOf(v)
	case []ir.Dim:
		return listOf(v)
	}
	return fmt.Sprint(value)
}

// listOf returns a list as JavaScript has it.
func listOf[T any](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
		if _, err := strconv.Atoi(texts[i]); err != nil {
			texts[i] = "'" + texts[i] + "'" // a size that has a name
		}
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// number returns the shortest JavaScript literal that identifies a float of the given number of
// bits.
func number(x float64, bits int) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(x, 'g', -1, bits)
}

// elementText returns an element as JavaScript has it.
func elementText(a *ir.Array, i int) string {
	if a.DType.IsFloat() {
		return number(a.Float(i), 32)
	}
	return strconv.FormatFloat(a.Float(i), 'f', -1, 64)
}

// valuesOf returns the elements of an array for JSON.
func valuesOf(a *ir.Array) []any {
	out := make([]any, a.Len())
	for i := range out {
		out[i] = a.Float(i)
		if x := a.Float(i); math.IsNaN(x) || math.IsInf(x, 0) {
			out[i] = number(x, 32)
		}
	}
	return out
}

// program returns the whole program of an example.
func program(d *ir.Def, s ir.Sample, call string, results int) string {
	var w strings.Builder
	w.WriteString("import { graph, init, program } from '@rlx-go/rlx';\n\nawait init();\n")
	fmt.Fprintf(&w, "const example = graph('%s', (%s) => {\n", d.Op, builderName(d))
	var inputs []string
	for i, a := range s.In {
		name := operandName(d, i)
		fmt.Fprintf(&w, "  const %s = %s.input('%s', '%s', %s);\n", name, builderName(d), name, a.DType, listOf(a.Dims))
		texts := make([]string, a.Len())
		for k := range texts {
			texts[k] = elementText(a, k)
		}
		inputs = append(inputs, fmt.Sprintf("  %s: %s,", name, inputText(a, texts)))
	}
	names := []string{"y"}
	for i := 1; i < results; i++ {
		names = append(names, "y"+strconv.Itoa(i+1))
	}
	writeOutputs(&w, d, call, names)
	w.WriteString("});\nconst opened = await program({ entries: { example } });\n")
	given := "{}"
	if len(inputs) > 0 {
		given = "{\n" + strings.Join(inputs, "\n") + "\n}"
	}
	fmt.Fprintf(&w, "await opened.run('example', %s);\n", given)
	for _, name := range names {
		fmt.Fprintf(&w, "console.log(await opened.read('%s'));\n", name)
	}
	w.WriteString("opened.close();\n")
	return w.String()
}

// inputText returns an operand as an input of a run: a typed array, or a number.
func inputText(a *ir.Array, texts []string) string {
	if len(a.Dims) == 0 {
		return texts[0]
	}
	return fmt.Sprintf("%s.of(%s)", arrayClasses[a.DType], strings.Join(texts, ", "))
}

// writeOutputs writes the lines that make the results of a call outputs.
func writeOutputs(w *strings.Builder, d *ir.Def, call string, names []string) {
	if methodOf(d).result == "V" {
		fmt.Fprintf(w, "  %s.output('%s', %s);\n", builderName(d), names[0], call)
		return
	}
	fmt.Fprintf(w, "  const [%s] = %s;\n", strings.Join(names, ", "), call)
	for _, name := range names {
		fmt.Fprintf(w, "  %s.output('%s', %s);\n", builderName(d), name, name)
	}
}
