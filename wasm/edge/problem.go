package edge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// problem is an error in the form of RFC 9457, with the members kind, op and operands of this package.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Kind     string   `json:"kind"`
	Op       string   `json:"op,omitempty"`
	Operands []string `json:"operands,omitempty"`
}

func (p *problem) Error() string { return p.Detail }

var (
	// errBusy refuses a request while others compile and wait.
	errBusy = &problem{Status: http.StatusServiceUnavailable, Kind: "busy", Detail: "the service compiles as much as it may: ask again later"}
	// errFull refuses a request while the bodies of others take the memory that there is for them.
	errFull = &problem{Status: http.StatusServiceUnavailable, Kind: "busy", Detail: "the service receives as much as it may: ask again later"}
)

func tooLarge(text string, args ...any) *problem {
	return &problem{Status: http.StatusRequestEntityTooLarge, Kind: "limit", Detail: fmt.Sprintf(text, args...)}
}

// kinds maps errors of package ir to HTTP statuses and the kinds of the TypeScript package.
var kinds = []struct {
	err    error
	kind   string
	status int
}{
	{ir.ErrSyntax, "syntax", http.StatusBadRequest},
	{ir.ErrShape, "shape", http.StatusUnprocessableEntity},
	{ir.ErrDType, "dtype", http.StatusUnprocessableEntity},
	{ir.ErrAttr, "attr", http.StatusUnprocessableEntity},
	{ir.ErrName, "name", http.StatusUnprocessableEntity},
	{ir.ErrIndex, "index", http.StatusUnprocessableEntity},
	{ir.ErrGraph, "graph", http.StatusUnprocessableEntity},
	{ir.ErrNoRule, "rule", http.StatusUnprocessableEntity},
	{ir.ErrSymbol, "symbol", http.StatusUnprocessableEntity},
	{ir.ErrUnsupported, "unsupported", http.StatusUnprocessableEntity},
}

func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	p = &problem{Status: http.StatusInternalServerError, Kind: "internal", Detail: err.Error()}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			p.Status, p.Kind = k.status, k.kind
			break
		}
	}
	var op *ir.OpError
	if errors.As(err, &op) {
		if op.Pos.File != "" { // a line of this program, in which a step was derived
			p.Detail = strings.ReplaceAll(p.Detail, op.Pos.String()+": ", "")
		}
		p.Op = string(op.Op)
		for _, t := range op.In {
			p.Operands = append(p.Operands, t.String())
		}
	}
	return p
}

// refuse answers with a problem, which is not cached.
func refuse(w http.ResponseWriter, given *problem) {
	p := *given
	p.Type, p.Title = "urn:rlx:"+p.Kind, http.StatusText(p.Status)
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
}
