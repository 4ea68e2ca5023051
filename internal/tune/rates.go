package tune

import (
	"encoding/json"
	"os"

	"github.com/rlx-go/rlx/internal/wholefile"
)

// ratesEnding is that of the file of a device's rates, beside the one of its schedules.
const ratesEnding = ".json"

// ratesFile is the content of the file: the device as it was measured, and its rates.
type ratesFile struct {
	Device string
	Rates  json.RawMessage
}

// ReadRates reads what [WriteRates] kept of a device, and reports whether there is anything that fits.
func ReadRates(device string, rates any) bool {
	path, err := pathOf(device, ratesEnding)
	if err != nil || path == "" {
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	var f ratesFile
	return json.Unmarshal(data, &f) == nil && f.Device == device && json.Unmarshal(f.Rates, rates) == nil
}

// WriteRates keeps the rates of a device; the name must identify the device and its driver. It does nothing
// where [Variable] is "off".
func WriteRates(device string, rates any) error {
	path, err := pathOf(device, ratesEnding)
	if err != nil || path == "" {
		return err
	}
	encoded, err := json.Marshal(rates)
	if err != nil {
		return err
	}
	data, err := json.Marshal(ratesFile{device, encoded})
	if err != nil {
		return err
	}
	return wholefile.Write(path, data)
}
