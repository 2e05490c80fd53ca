package codes

import (
	"encoding/json"
	"testing"
)

func TestCodes(t *testing.T) {
	var all []Code
	if err := json.Unmarshal([]byte(`["CANCELLED", 16, "OK", null]`), &all); err != nil || all[0] != Canceled || all[1] != Unauthenticated || all[2] != OK {
		t.Fatal(all, err)
	}
	for _, bad := range []string{`"Canceled"`, `17`, `-1`, `{}`, `""`} {
		var code Code
		if json.Unmarshal([]byte(bad), &code) == nil {
			t.Error(bad, code)
		}
	}
	if DataLoss.String() != "DataLoss" || Code(17).String() != "Code(17)" {
		t.Error(DataLoss, Code(17))
	}
}
