package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/coreml/mil"
)

// long is the number of operations above which a function repeats itself, as factorisations do, whose loops are
// unrolled. Of such functions coremltools, which takes a millisecond for an operation, reads those alone that have
// an operation in a form of its own. Package native/coreml evaluates the others.
const long = 100

// dropRepeated drops the long functions whose operations all have forms that shorter functions have, but for one
// function of each package.
func dropRepeated(packages []*packaged) {
	type place struct{ of, at int }
	var places []place
	for i, p := range packages {
		for k := range p.cases {
			places = append(places, place{i, k})
		}
	}
	function := func(at place) *mil.Function { return packages[at.of].p.Program.Functions[at.at] }
	slices.SortStableFunc(places, func(x, y place) int { return cmp.Compare(len(function(x).Ops), len(function(y).Ops)) })
	seen, kept := map[string]bool{}, make([][]int, len(packages))
	for _, at := range places {
		f := function(at)
		isNew := addForms(f, seen)
		if isNew || len(f.Ops) <= long || kept[at.of] == nil {
			kept[at.of] = append(kept[at.of], at.at)
		}
	}
	for i, p := range packages {
		slices.Sort(kept[i])
		var cases []one
		var functions []*mil.Function
		for _, k := range kept[i] {
			cases, functions = append(cases, p.cases[k]), append(functions, p.p.Program.Functions[k])
		}
		p.cases, p.p.Program.Functions = cases, functions
	}
}

// addForms adds the forms of a function's operations and reports whether one is new.
func addForms(f *mil.Function, seen map[string]bool) (isNew bool) {
	values := map[string]string{}
	for _, in := range f.Inputs {
		values[in.Name] = typeForm(in.Type)
	}
	for _, op := range f.Ops {
		values[op.Name] = typeForm(op.Type)
		if op.Value != nil {
			values[op.Name] = "constant " + values[op.Name]
			if op.Type.DType == mil.Bool || op.Type.DType == mil.String {
				values[op.Name] += fmt.Sprint(op.Value.Data, op.Value.Text)
			}
			continue
		}
		var form strings.Builder
		form.WriteString(op.Kind)
		for _, a := range op.Inputs {
			var of []string
			for _, v := range a.Values {
				of = append(of, values[v])
			}
			form.WriteString(" " + a.Parameter + " " + strings.Join(slices.Compact(of), " "))
		}
		form.WriteString(" -> " + values[op.Name])
		if !seen[form.String()] {
			seen[form.String()], isNew = true, true
		}
	}
	return isNew
}

// typeForm is a type without its sizes, but for whether each is 0, 1 or more.
func typeForm(t mil.Type) string {
	form := t.DType.String()
	for _, d := range t.Dims {
		form += fmt.Sprint(",", min(d, 2))
	}
	return form
}
