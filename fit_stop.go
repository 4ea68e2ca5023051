package rlx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/wholefile"
	"github.com/rlx-go/rlx/ir"
)

// Checkpoints holds the folder and the frequency of checkpoints of [Fit] ([Trainer.SaveFile]). None is written
// while a trained parameter is NaN or infinite, so that the files are those of the last step before; with
// [Training.StopOnNaN] that ends the training. With several
// ranks the folder is shared by all. Rank 0 writes whole values ([Trainer.Whole]), so that a run of any number of
// ranks, divided in any way, resumes.
type Checkpoints struct {
	// Folder is where the files are: step-00000500.safetensors, and best.safetensors for the best
	// evaluation with its value in best.txt. It is made if it does not exist; "" saves nothing.
	Folder string
	// Every is the number of steps between checkpoints; 0 means one at each report. There is one after the last step, too.
	Every int
	// Last is the number of checkpoints to keep, the best one aside; 0 means 1.
	Last int
	// Resume continues from the newest checkpoint in the folder, if there is one. Without it a checkpoint of a step that
	// the trainer has not reached is an error: it is of another training.
	Resume bool
}

// Names of files in the folder of checkpoints.
const (
	stepPrefix    = "step-"
	extension     = ".safetensors"
	bestFile      = "best" + extension
	bestValueFile = "best.txt"
)

func (c Checkpoints) check() error {
	if c.Every < 0 || c.Last < 0 {
		return ir.Attrf("Every is %d and Last %d: neither must be negative", c.Every, c.Last)
	}
	if c.Folder == "" && (c.Resume || c.Every > 0 || c.Last > 0) {
		return ir.Attrf("Folder is empty: it must be given with Every, Last or Resume")
	}
	if c.Folder == "" {
		return nil
	}
	return os.MkdirAll(c.Folder, 0o777)
}

// list returns the checkpoints in the folder, the oldest first.
func (c Checkpoints) list() ([]string, error) {
	names, err := fs.Glob(os.DirFS(c.Folder), stepPrefix+"*"+extension) // the folder is no part of the pattern
	var files []string
	for _, name := range names {
		if stepOf(name) >= 0 {
			files = append(files, filepath.Join(c.Folder, name))
		}
	}
	slices.SortFunc(files, func(a, b string) int { return stepOf(a) - stepOf(b) })
	return files, err
}

// stepOf returns the step in the name of a checkpoint, -1 for other files.
func stepOf(file string) int {
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), stepPrefix), extension)
	n, err := strconv.Atoi(name)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// resume loads the newest checkpoint, if there is one, and returns its metadata. Without Resume a checkpoint of a later step is
// refused: it is of another training, and as the newest it would be kept in place of those of this one.
func (c Checkpoints) resume(ctx context.Context, t *Trainer) (map[string]string, error) {
	if c.Folder == "" {
		return nil, nil
	}
	files, err := c.list()
	if err != nil {
		return nil, err
	}
	newest := -1
	if len(files) > 0 {
		newest = stepOf(files[len(files)-1])
	}
	if newest, err = t.ofFirstRank(ctx, newest); err != nil || newest < 0 {
		return nil, err
	}
	if c.Resume {
		return t.loadWholeFile(ctx, c.file(newest))
	}
	if newest > t.Steps() {
		return nil, ir.Attrf("Folder has the checkpoint of step %d, and the trainer did %d steps: Resume must be true, or the folder another", newest, t.Steps())
	}
	return nil, nil
}

// file returns the checkpoint of a step.
func (c Checkpoints) file(step int) string {
	return filepath.Join(c.Folder, fmt.Sprintf("%s%08d%s", stepPrefix, step, extension))
}

// write saves the values of a step with metadata, and removes checkpoints that are no longer kept.
func (c Checkpoints) write(step int, values map[string]Tensor, metadata map[string]string) error {
	if err := saveWholeFile(c.file(step), values, metadata); err != nil {
		return err
	}
	files, err := c.list()
	if err != nil {
		return err
	}
	for _, name := range files[:max(0, len(files)-max(c.Last, 1))] {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// writeBest saves the best values, with that of their metric.
func (c Checkpoints) writeBest(values map[string]Tensor, metric float64) error {
	if err := saveWholeFile(filepath.Join(c.Folder, bestFile), values, nil); err != nil {
		return err
	}
	return wholefile.Replace(filepath.Join(c.Folder, bestValueFile), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, strconv.FormatFloat(metric, 'g', -1, 64))
		return err
	})
}

// lossSum is a sum of losses.
type lossSum struct {
	sum   float64
	steps int
}

// Metadata of a checkpoint between two reports: the sum of the losses since the last one, and their number.
const (
	lossKey  = "fit/loss"
	stepsKey = "fit/steps"
)

// metadata returns m with the sum, unless that is of no steps.
func (s lossSum) metadata(m map[string]string) map[string]string {
	if s.steps == 0 {
		return m
	}
	if m == nil {
		m = map[string]string{}
	}
	m[lossKey], m[stepsKey] = strconv.FormatFloat(s.sum, 'g', -1, 64), strconv.Itoa(s.steps)
	return m
}

// lossSumOf returns the sum in the metadata of a checkpoint, zero without one.
func lossSumOf(metadata map[string]string) lossSum {
	sum, err := strconv.ParseFloat(metadata[lossKey], 64)
	steps, failed := strconv.Atoi(metadata[stepsKey])
	if err != nil || failed != nil || steps < 0 {
		return lossSum{}
	}
	return lossSum{sum, steps}
}

// stopper counts evaluations without an improvement.
type stopper struct {
	EarlyStop
	named bool // Metric was given
	best  float64
	known bool // best is set
	worse int  // evaluations since the best one
}

// Metadata of a checkpoint: the best value so far, and the evaluations since.
const (
	bestKey  = "fit/best"
	worseKey = "fit/worse"
)

// metadata returns what a checkpoint contains of the stopper, nil before the first evaluation.
func (s *stopper) metadata() map[string]string {
	if !s.known && s.worse == 0 {
		return nil
	}
	m := map[string]string{worseKey: strconv.Itoa(s.worse)}
	if s.known {
		m[bestKey] = strconv.FormatFloat(s.best, 'g', -1, 64)
	}
	return m
}

// resume sets the best value and the evaluations since from the metadata of a checkpoint, or the best
// value from the folder of checkpoints without any.
func (s *stopper) resume(c Checkpoints, metadata map[string]string) {
	text, counted := metadata[bestKey], false
	if n, err := strconv.Atoi(metadata[worseKey]); err == nil && n >= 0 {
		s.worse, counted = n, true
	}
	if c.Resume && !counted {
		data, err := os.ReadFile(filepath.Join(c.Folder, bestValueFile))
		if err != nil {
			return // no evaluation so far
		}
		text = strings.TrimSpace(string(data))
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		s.best, s.known = v, true
	}
}

// better reports whether an evaluation is the best so far. NaN never is. The error is of kind
// [ir.ErrName] if the metric is not among the outputs.
func (s *stopper) better(eval map[string]float64) (bool, error) {
	v, ok := eval[s.Metric]
	switch {
	case !ok && (s.named || s.Patience > 0):
		return false, ir.Errorf(ir.ErrName, "Metric is %q: it must be an output of rank 0 or a metric of the evaluation, one of %q", s.Metric, slices.Sorted(maps.Keys(eval)))
	case !ok || math.IsNaN(v):
		s.worse++
		return false, nil
	}
	gain := s.best - v
	if s.Larger {
		gain = -gain
	}
	if s.known && !(gain > s.MinDelta) {
		s.worse++
		return false, nil
	}
	s.best, s.known, s.worse = v, true, 0
	return true, nil
}

// exhausted reports whether Patience evaluations in a row were no improvement.
func (s *stopper) exhausted() bool { return s.Patience > 0 && s.worse >= s.Patience }

// Sequences of a terminal: eraseLine erases its line, noWrap cuts lines at its width until wrap.
const (
	eraseLine = "\r\x1b[K"
	noWrap    = "\x1b[?7l"
	wrap      = "\x1b[?7h"
)

// writeProgress writes a report: over the last line of a terminal, with a bar, or as a line.
func writeProgress(w io.Writer, r Report) error {
	if w == nil {
		return nil
	}
	line := r.String() + "\n"
	if isTerminal(w) {
		line = terminalLine(r)
	}
	_, err := io.WriteString(w, line)
	return err
}

// writeLine writes a line that stays, over the last line of a terminal.
func writeLine(w io.Writer, line string) error {
	if isTerminal(w) {
		line = eraseLine + line
	}
	_, err := io.WriteString(w, line+"\n")
	return err
}

// terminalLine returns a report for a terminal. But for the last one it is cut at the width of the terminal: of one that
// wraps the next report would erase the last line alone.
func terminalLine(r Report) string {
	line := bar(r) + r.String()
	if r.Done {
		return eraseLine + line + "\n"
	}
	return eraseLine + noWrap + line + wrap
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}

// bar returns "[=====>    ] " for a training of known length, else "".
func bar(r Report) string {
	const width = 24
	done := 0
	switch {
	case r.Steps > 0:
		done = width * r.Step / r.Steps
	case r.Epochs > 0:
		done = width * r.Epoch / r.Epochs
	default:
		return ""
	}
	done = min(done, width)
	return "[" + strings.Repeat("=", done) + strings.Repeat(" ", width-done) + "] "
}

// idle reports whether no step was left to do, as after a resume from the last step: there is no loss and no rate.
func (r Report) idle() bool { return r.Rate == 0 && math.IsNaN(r.Loss) }

// String returns "step 200/1000, epoch 2, loss 0.123, accuracy 0.98, eval loss 0.15 (best), 350
// steps/s"; "no steps left" instead of the loss and the rate if none was.
func (r Report) String() string {
	of := func(n, all int) string {
		if all == 0 {
			return strconv.Itoa(n)
		}
		return fmt.Sprintf("%d/%d", n, all)
	}
	parts := []string{"step " + of(r.Step, r.Steps), "epoch " + of(r.Epoch, r.Epochs)}
	if r.idle() {
		parts = append(parts, "no steps left")
	} else {
		parts = append(parts, fmt.Sprintf("loss %.4g", r.Loss))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		parts = append(parts, fmt.Sprintf("%s %.4g", name, r.Metrics[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Eval)) {
		parts = append(parts, fmt.Sprintf("eval %s %.4g", name, r.Eval[name]))
	}
	if r.Best {
		parts[len(parts)-1] += " (best)"
	}
	if !r.idle() {
		parts = append(parts, fmt.Sprintf("%.3g steps/s", r.Rate))
	}
	return strings.Join(parts, ", ")
}
