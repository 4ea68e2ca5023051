package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"unicode"

	"github.com/rlx-go/rlx/internal/recipe"
	"github.com/rlx-go/rlx/ir"
)

// Request is the body of a POST. Names are those of the TypeScript package.
type Request struct {
	// Name is the plan's name, "main" by default.
	Name string `json:"name,omitempty"`
	// Entries are the graphs in order.
	Entries []Entry `json:"entries"`
	// Symbols are the sizes of symbolic dimensions.
	Symbols map[string]int `json:"symbols,omitempty"`
	// Targets are "webgpu", the default, "wasm" and "wasm-relaxed"; the plans of those after the first are its variants.
	Targets []string `json:"targets,omitempty"`
	// Limits are the capabilities of the WebGPU device; by default those of every device. They are
	// rounded down to levels, so that many devices share a plan.
	Limits Limits `json:"limits,omitzero"`
}

// Entry is a graph of a module.
type Entry struct {
	Name string `json:"name"`
	// Text is the graph in its text form.
	Text string `json:"text"`
	// Step describes the training step of the graph; nil for a graph that is compiled unchanged.
	Step *Step `json:"step,omitempty"`
}

// Step describes a training step: the options of step in TypeScript.
type Step struct {
	// Loss is the output to minimise, "loss" by default.
	Loss string `json:"loss,omitempty"`
	// Optimizer and Schedule are a kind and numbers, as in {"kind": "adam", "weightDecay": 0.1}. Without a schedule the
	// learning rate is the input "lr".
	Optimizer Rule     `json:"optimizer"`
	Schedule  Rule     `json:"schedule,omitempty"`
	Frozen    []string `json:"frozen,omitempty"`
	// History is the number of losses to keep on the device.
	History int `json:"history,omitempty"`
	// Precision is "bf16" or "f16" for products in half precision, "" for none.
	Precision string `json:"precision,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Rule is a kind, under "kind", and numbers or truth values by name.
type Rule map[string]any

// Limits are those of a GPUDevice, by name.
type Limits struct {
	StorageBuffers int    `json:"maxStorageBuffersPerShaderStage,omitempty"`
	BindingBytes   int    `json:"maxStorageBufferBindingSize,omitempty"`
	BufferBytes    int    `json:"maxBufferSize,omitempty"`
	SharedBytes    int    `json:"maxComputeWorkgroupStorageSize,omitempty"`
	Invocations    int    `json:"maxComputeInvocationsPerWorkgroup,omitempty"`
	F16            bool   `json:"f16,omitempty"`
	Subgroup       int    `json:"subgroup,omitempty"`
	Device         string `json:"device,omitempty"`
}

// recipe returns the limits of the level: numbers are rounded down to the default of WebGPU times a
// power of two. One that is not above its default counts as the default.
func (l Limits) recipe() recipe.Limits {
	return recipe.Limits{
		StorageBuffers: level(l.StorageBuffers, 8), BindingBytes: level(l.BindingBytes, 128<<20), BufferBytes: level(l.BufferBytes, 256<<20),
		SharedBytes: level(l.SharedBytes, 16<<10), Invocations: level(l.Invocations, 256), F16: l.F16, Subgroup: l.Subgroup, Device: l.Device,
	}
}

func level(given, common int) int {
	if given < 2*common {
		return 0
	}
	n := common
	for n <= given/2 {
		n *= 2
	}
	return n
}

func parseRequest(body []byte) (*Request, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	q := &Request{}
	err := d.Decode(q)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			return nil, &problem{Status: http.StatusBadRequest, Kind: "syntax", Detail: "there is more behind the request"}
		}
	}
	if err != nil {
		return nil, &problem{Status: http.StatusBadRequest, Kind: "syntax", Detail: "the body is no request: " + faultOf(err)}
	}
	if q.Name == "" {
		q.Name = "main"
	}
	if len(q.Targets) == 0 {
		q.Targets = []string{"webgpu"}
	}
	return q, nil
}

// faultOf says what is wrong with a body, without the names of Go's types.
func faultOf(err error) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return err.Error()
	case wrong.Field == "":
		return "its type is " + wrong.Value
	}
	return "the type of " + wrong.Field + " is " + wrong.Value
}

// derived returns the graph of an entry with its sizes, or its training step.
func (e Entry) derived(g *ir.Graph, symbols map[string]int) (*ir.Graph, error) {
	if len(g.Symbols()) > 0 {
		var err error
		if g, err = g.Bind(symbols); err != nil {
			return nil, err
		}
	}
	if e.Step == nil {
		return g, nil
	}
	s, err := e.Step.recipe()
	if err != nil {
		return nil, err
	}
	if g, err = s.Graph(g); err == nil && e.Step.Precision != "" {
		g, err = recipe.Mixed(g, e.Step.Precision)
	}
	return g, err
}

// lossScale is the initial loss scale for products in f16, whose range is small.
const lossScale = 1 << 16

func (s *Step) recipe() (recipe.Step, error) {
	r := recipe.Step{Loss: s.Loss, Frozen: s.Frozen, History: s.History, Name: s.Name}
	if r.Loss == "" {
		r.Loss = "loss"
	}
	var err error
	if r.Optimizer, r.Hyper, err = s.Optimizer.numbers(); err != nil {
		return r, err
	}
	if r.Schedule, r.Rates, err = s.Schedule.numbers(); err != nil {
		return r, err
	}
	switch s.Precision {
	case "f16":
		r.Hyper["loss_scale"] = lossScale
	case "", "bf16":
	default:
		return r, ir.Attrf("the precision is %q; it must be bf16 or f16", s.Precision)
	}
	if s.History < 0 {
		return r, ir.Attrf("the history has %d losses; it must have 0 or more", s.History)
	}
	return r, nil
}

// numbers returns the kind of a rule, and its numbers by their names in Go.
func (r Rule) numbers() (string, recipe.Numbers, error) {
	kind, h := "", recipe.Numbers{}
	for name, value := range r {
		switch v := value.(type) {
		case string:
			if name == "kind" {
				kind = v
				continue
			}
		case bool:
			if v {
				h[snake(name)] = 1
			}
			continue
		case float64:
			if !math.IsInf(v, 0) {
				h[snake(name)] = v
				continue
			}
		}
		return "", nil, ir.Attrf("%s is %v; it must be a number or a truth value", name, value)
	}
	return kind, h, nil
}

// snake returns a name in snake case: weight_decay of weightDecay.
func snake(name string) string {
	var out strings.Builder
	for _, c := range name {
		if unicode.IsUpper(c) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(c))
	}
	return out.String()
}
