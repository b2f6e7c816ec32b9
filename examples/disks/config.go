// SPDX-License-Identifier: Apache-2.0

package disks

import (
	"encoding/json"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// Type is the type of the deploy items.
const Type lsv1alpha1.DeployItemType = "example.org/disk"

var (
	configKind = schema.GroupVersionKind{Group: "disk.example.org", Version: "v1", Kind: "DiskConfig"}
	statusKind = schema.GroupVersionKind{Group: "disk.example.org", Version: "v1", Kind: "DiskStatus"}
)

// Config is the content of spec.config.
type Config struct {
	// Size is the size of the disk in GB.
	Size int `json:"size"`
}

// Status is the content of status.providerStatus.
type Status struct {
	// DiskID is the ID of the disk that belongs to the item. The ID is stored before the disk is ordered.
	DiskID string `json:"diskID,omitempty"`
}

func readConfig(di *lsv1alpha1.DeployItem) (*Config, error) {
	config, err := deployerlib.DecodeConfigAs[Config](di, configKind)
	if err != nil {
		return nil, err
	}
	if config.Size <= 0 {
		return nil, deployerlib.NewConfigError("spec.config.size", "must be positive, is %d", config.Size)
	}
	return config, nil
}

func readStatus(di *lsv1alpha1.DeployItem) (Status, error) {
	status := Status{}
	if di.Status.ProviderStatus == nil {
		return status, nil
	}
	if err := json.Unmarshal(di.Status.ProviderStatus.Raw, &status); err != nil {
		return status, fmt.Errorf("decode provider status: %w", err)
	}
	return status, nil
}

// getRegion returns the region of a target. The configuration of a Target for this deployer is a JSON object.
func getRegion(target *lsv1alpha1.ResolvedTarget) (string, error) {
	if target == nil {
		return "", deployerlib.NewConfigError("spec.target", "required")
	}
	var content struct {
		Region string `json:"region"`
	}
	if err := json.Unmarshal([]byte(target.Content), &content); err != nil || content.Region == "" {
		return "", deployerlib.NewConfigError("spec.target", "target %q names no region", target.Name)
	}
	return content.Region, nil
}
