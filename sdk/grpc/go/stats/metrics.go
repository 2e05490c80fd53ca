package stats

import "maps"

// MetricSet is names of metrics. It does not change.
type MetricSet struct{ names map[string]bool }

// NewMetricSet has these names.
func NewMetricSet(metricNames ...string) *MetricSet { return (&MetricSet{}).Add(metricNames...) }

// Metrics are the names.
func (m *MetricSet) Metrics() map[string]bool { return m.names }

func (m *MetricSet) with(is bool, names []string) *MetricSet {
	all := maps.Clone(m.names)
	if all == nil {
		all = map[string]bool{}
	}
	for _, name := range names {
		if is {
			all[name] = true
		} else {
			delete(all, name)
		}
	}
	return &MetricSet{all}
}

// Add has these names besides.
func (m *MetricSet) Add(metricNames ...string) *MetricSet { return m.with(true, metricNames) }

// Join has the other's names besides.
func (m *MetricSet) Join(metrics *MetricSet) *MetricSet {
	all := m.with(true, nil)
	maps.Copy(all.names, metrics.names)
	return all
}

// Remove has not these names.
func (m *MetricSet) Remove(metricNames ...string) *MetricSet { return m.with(false, metricNames) }
