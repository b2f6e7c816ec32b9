// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	eventuallyTimeout = 2 * time.Minute
	poll              = 2 * time.Millisecond
)

// The manifests that the items of the specs apply.
const (
	configMapBody  = `"metadata":{"labels":{"app":"web"},"annotations":{"note":"x"}},"data":{"color":"red","size":"big"}`
	secretBody     = `"data":{"p":"YQ==","q":"Yg=="}`
	serviceBody    = `"spec":{"ports":[{"name":"http","port":80,"targetPort":8080,"protocol":"TCP"}],"selector":{"app":"web"}}`
	balancerBody   = `"spec":{"type":"LoadBalancer","ports":[{"port":80}],"selector":{"app":"web"}}`
	deploymentBody = `"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[` +
		`{"name":"web","image":"web:1","args":["a","b"],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"resources":{"limits":{"cpu":"1"}}},{"name":"proxy","image":"proxy:1"}]}}}`
	scaledBody = `"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1","resources":{}}]}}}`
	scalerBody = `"spec":{"minReplicas":1,"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},` +
		`"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]}`
	sampleBody = `"spec":{"replicas":2,"set":["a","b"],"atomic":["a","b"],"map":[{"name":"a","value":"1"},{"name":"b","value":"2"}],"atomicMap":{"k":"v"},` +
		`"free":{"n":1,"text":"x","deep":{"leaf":"y","list":["a",{"b":"c"}]},"empty":{}}}`
)

// sentinels contains a valid manifest for each kind. The method `waitUntilProcessed` writes an object of the kind to
// find out whether the watch is up to date.
var sentinels = map[schema.GroupVersionKind]string{
	configMap: "", secret: "", sample: "", whole: "", shift: "",
	service: serviceBody, deployment: deploymentBody, scalerV1: `"spec":{"maxReplicas":1,"scaleTargetRef":{"kind":"D","name":"d"}}`,
	scalerV2: scalerBody,
}
