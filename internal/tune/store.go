package tune

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/wholefile"
)

// Variable is the environment variable for the folder of stores, by default rlx/tune in the
// user's cache folder. "off" disables them.
const Variable = "RLX_TUNE_CACHE"

// Store holds the tuning results of one device. The file has a line that names the format
// and the device, then a line for each group:
//
//	rlx-tune 1 NVIDIA H200, driver 13.0
//	0f3a…  elements each=4  201183ns  131737ns
//
// with the key, the schedule, and the untuned and the tuned time, separated by tabs. A
// Store is not safe for concurrent use.
type Store struct {
	path    string // "" where nothing is kept
	device  string
	found   map[sched.Key]Result
	changed bool
	// Problems lists the parts of the file that were invalid, which are measured again.
	Problems []error
}

// Open reads the store of a device; the name must identify the device and its driver. An
// unreadable store is empty and has Problems.
func Open(device string) *Store {
	s := &Store{device: strings.Join(strings.Fields(device), " "), found: map[sched.Key]Result{}}
	path, err := pathOf(s.device, ".txt")
	if err != nil {
		s.Problems = append(s.Problems, err)
	}
	if path == "" {
		return s
	}
	s.path = path
	file, err := os.ReadFile(s.path)
	if err == nil {
		s.read(file)
	} else if !errors.Is(err, fs.ErrNotExist) {
		s.Problems = append(s.Problems, err)
	}
	return s
}

// pathOf returns the file of a device in the folder of measurements, "" if none is kept. The error is
// that of a user without a home.
func pathOf(device, ending string) (string, error) {
	dir := os.Getenv(Variable)
	if dir == "off" {
		return "", nil
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(cache, "rlx", "tune")
	}
	sum := sha256.Sum256([]byte(device))
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+ending), nil
}

// head is the first line of a store.
func (s *Store) head() string { return "rlx-tune 1 " + s.device }

func (s *Store) read(file []byte) {
	lines := bufio.NewScanner(bytes.NewReader(file))
	for n := 1; lines.Scan(); n++ {
		if n == 1 {
			if lines.Text() != s.head() {
				s.Problems = append(s.Problems, fmt.Errorf("%s: line 1 is %q; it must be %q", s.path, lines.Text(), s.head()))
				return
			}
			continue
		}
		r, err := parseResult(lines.Text())
		if err != nil {
			s.Problems = append(s.Problems, fmt.Errorf("%s: line %d: %w", s.path, n, err))
			continue
		}
		s.found[r.Key] = r
	}
	if err := lines.Err(); err != nil {
		s.Problems = append(s.Problems, fmt.Errorf("%s: %w", s.path, err))
	}
}

func parseResult(line string) (r Result, err error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 4 {
		return r, fmt.Errorf("%d fields; want 4", len(fields))
	}
	if r.Key, err = sched.ParseKey(fields[0]); err != nil {
		return r, err
	}
	if r.Schedule, err = emit.ParseSchedule(fields[1]); err != nil {
		return r, err
	}
	if r.Untuned, err = time.ParseDuration(fields[2]); err != nil {
		return r, err
	}
	r.Tuned, err = time.ParseDuration(fields[3])
	return r, err
}

// Get returns the result for a group.
func (s *Store) Get(k sched.Key) (Result, bool) {
	r, ok := s.found[k]
	return r, ok
}

// Put records the result for a group. [Store.Save] writes it.
func (s *Store) Put(r Result) {
	s.found[r.Key] = r
	s.changed = true
}

// Save writes the store if it changed. If two processes save at once, one of the files
// wins; the other results are measured again.
func (s *Store) Save() error {
	if s.path == "" || !s.changed {
		return nil
	}
	lines := make([]string, 0, len(s.found))
	for _, r := range s.found {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%dns\t%dns\n", r.Key, r.Schedule, r.Untuned.Nanoseconds(), r.Tuned.Nanoseconds()))
	}
	slices.Sort(lines)
	if err := wholefile.Write(s.path, []byte(s.head()+"\n"+strings.Join(lines, ""))); err != nil {
		return err
	}
	s.changed = false
	return nil
}
