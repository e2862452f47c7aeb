def draw_svg(spec, load=None): return ""
