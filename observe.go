package rlx

import (
	"encoding/json"
	"io"
	"math"
	"time"
)

// JSONLines returns a callback for [Loop] that writes each report as a line of JSON:
//
//	{"time":"2026-01-02T15:04:05Z","step":200,"epoch":2,"loss":0.12,"rate":350,"throughput":44800,"metrics":{"accuracy":0.97},"eval":{"loss":0.15},"best":true}
//
// Numbers that are not finite are null. Empty metrics and eval are omitted, and so is best unless
// the evaluation is the best so far.
func JSONLines(w io.Writer) func(r Report) error {
	return func(r Report) error {
		line, err := json.Marshal(reportLine{
			Time: time.Now().UTC().Format(time.RFC3339Nano), Step: r.Step, Epoch: r.Epoch,
			Loss: finite(r.Loss), Rate: finite(r.Rate), Throughput: finite(r.Throughput),
			Metrics: finiteAll(r.Metrics), Eval: finiteAll(r.Eval), Best: r.Best,
		})
		if err != nil {
			return err
		}
		_, err = w.Write(append(line, '\n'))
		return err
	}
}

// reportLine is a line of [JSONLines].
type reportLine struct {
	Time       string              `json:"time"`
	Step       int                 `json:"step"`
	Epoch      int                 `json:"epoch"`
	Loss       *float64            `json:"loss"`
	Rate       *float64            `json:"rate"`
	Throughput *float64            `json:"throughput"`
	Metrics    map[string]*float64 `json:"metrics,omitempty"`
	Eval       map[string]*float64 `json:"eval,omitempty"`
	Best       bool                `json:"best,omitempty"`
}

// finite returns nil for a number that JSON cannot write.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func finiteAll(values map[string]float64) map[string]*float64 {
	out := make(map[string]*float64, len(values))
	for name, x := range values {
		out[name] = finite(x)
	}
	return out
}
