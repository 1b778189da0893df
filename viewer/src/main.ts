import { mount } from 'svelte';
import App from './App.svelte';
import './style.css';
import { page } from './view/state.svelte';
import { isFirstVisit } from './view/visit';

page.start(document.getElementById('unisono-data')?.textContent, location.hash);
if (page.isPlain(location.hash) && isFirstVisit(() => localStorage)) page.welcome();
mount(App, { target: document.getElementById('app')! });
